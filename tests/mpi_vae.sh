#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Decoding and encoding over the processes of an MPI job: the bytes of one process; what fails on one rank ends the image
# with one message; a signal to any rank stops all.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=ranks.sh
. "$(dirname "$0")/ranks.sh"
cd "$work"

if ! for_mpi; then
    echo 'a VAE over MPI: skipped: this was built without MPI'
    exit 77
fi
use_mpi 300
common=(--cpus 1 --tile-rows 2 -q)

"$SMALTI" generate -p 'a red star' --size 96x72 --steps 2 --save-latents -q -o star.png
python3 - <<'END_OF_PROGRAM'
import array, random, struct
random.seed(1)
def write(name, shape):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    count = shape[0] * shape[1] * shape[2] * shape[3]
    values = array.array("f", (random.gauss(0, 1) for _ in range(count)))
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values.tobytes())
write("three.npy", (3, 4, 9, 8))
write("endless.npy", (400, 4, 32, 32))
END_OF_PROGRAM

# both RANKS OPTION...: decodes and encodes as one process does.
both() {
    rm -rf one spread
    mkdir one spread
    for latents in star.safetensors three.npy; do
        expect 0 '' "$SMALTI" decode $latents "${common[@]}" -o one/
        expect 0 '' "${mpirun[@]}" -n "$1" "$SMALTI" decode $latents "${common[@]}" "${@:2}" -o spread/
    done
    expect 0 '' "$SMALTI" encode one/three-*.png --sample "${common[@]}" -o one/three.safetensors
    expect 0 '' "${mpirun[@]}" -n "$1" "$SMALTI" encode one/three-*.png --sample "${common[@]}" "${@:2}" -o spread/three.safetensors
    same one spread
}
both 2
both 3 --shares 1:0:2
both 4 --sched eager --precision f32
both 2 --shares auto

# Maps that are computed again, as memory is short: the plan is one for all ranks.
limit=(--memory-limit 300M)
expect 0 '' "$SMALTI" decode three.npy "${common[@]}" "${limit[@]}" -o one/
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" decode three.npy "${common[@]}" "${limit[@]}" -o spread/
same one spread

# Each rank computes a part.
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" decode star.safetensors "${common[@]}" --trace trace -o traced.png
for rank in '' .1; do
    [ "$(grep -o '"name":"conv"' "trace$rank" | wc -l)" -ge 20 ] || fail "trace$rank: too few convolutions"
done

# What is not there, does not fit, or differs is said once.
expect 1 'nothing.npy: cannot be opened' "${mpirun[@]}" -n 2 "$SMALTI" decode nothing.npy -o x.png
[ "$(grep -c 'nothing.npy' err)" -eq 1 ] || fail "said by both: $(cat err)"
expect 1 'scratch: expected none over several processes' "${mpirun[@]}" -n 2 "$SMALTI" decode three.npy --scratch . -o x/
expect 2 'the ranks do not do the same' "${mpirun[@]}" -n 1 "$SMALTI" decode star.safetensors --cpus 1 -o x.png : \
    -n 1 "$SMALTI" decode star.safetensors --cpus 1 --precision bf16 -o x.png
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" decode star.safetensors --cpus 1 --plan
[ "$(grep -c '^memory ' out)" -eq 1 ] || fail "--plan: $(cat out)"
fault=(env SMALTI_FAULT=full:1+ SMALTI_FAULT_IN=full LD_PRELOAD="$(dirname "$SMALTI")/.libs/libfault.so")
mkdir full
expect 1 'No space left on device' "${mpirun[@]}" -n 1 "${fault[@]}" "$SMALTI" decode star.safetensors "${common[@]}" -o full/ : \
    -n 1 "$SMALTI" decode star.safetensors "${common[@]}" -o full/
{ [ ! -e x.png ] && [ -z "$(files x)$(files full)" ]; } || fail "left behind: $(files .)"

# A signal to one rank drops the image; those before it are whole.
for rank in 0 1; do
    rm -rf some pid.*
    mkdir some
    # shellcheck disable=SC2016 # the inner shell's variables
    "${mpirun[@]}" -n 2 sh -c 'echo $$ >"pid.$OMPI_COMM_WORLD_RANK" && exec "$@"' sh "$SMALTI" decode endless.npy "${common[@]}" \
        -o some/ >said 2>&1 &
    until [ -n "$(find some -name '*.png')" ]; do sleep 0.1; done
    kill -TERM "$(cat pid.$rank)"
    status=0
    wait $! || status=$?
    { [ $status -eq 1 ] && grep -q 'stopped by ' said; } || fail "status $status: $(cat said)"
    [ ! -e some/endless-399.png ] || fail 'it was not stopped'
    [ -z "$(find some -type f ! -name '*.png')" ] || fail "left behind: $(files some)"
done
