#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One image over the processes of an MPI job: under every kind of strategy the bytes are those of one process; what fails
# on one rank fails its images alone; ranks that differ are refused; a rank that dies ends all, and leaves whole images.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

if ! grep -q '#define SMALTI_MPI' "$(dirname "$SMALTI")/config.h"; then
    echo 'one image over MPI: skipped: this was built without MPI'
    exit 77
fi
# On few cores, as root, and without ssh.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=/bin/false
export STARPU_WORKERS_NOBIND=1 STARPU_MPI_NOBIND=1 STARPU_HOME=$work
mpirun=(timeout -k 5 100 mpirun --oversubscribe --bind-to none)
options=(--size 96x64 --steps 2 --tile-tokens 8 --tile-rows 4 --cpus 1 --save-latents)

cat >prompts <<'LINES'
{"id": "a", "prompt": "a red star above a blue ring"}
{"id": "b", "prompt": "a green square", "seed": 3, "num_images_per_prompt": 2}
{"id": "c", "prompt": "a red star above a blue ring", "width": 64, "height": 96, "guidance_scale": 1}
LINES

# spread RANKS STRATEGY OPTION...: the same files as of one process.
spread() {
    "$SMALTI" generate "${options[@]}" --strategy "$2" "${@:3}" -q -o alone/
    expect 0 '' "${mpirun[@]}" -n "$1" "$SMALTI" generate "${options[@]}" --strategy "$2" "${@:3}" -q -o spread/
    same alone spread
    rm -r alone spread
}

# A batch, and one image: tokens, heads, weights, branches, layers.
spread 2 patch2 -P prompts
while read -r ranks strategy; do
    spread "$ranks" "$strategy" -p 'a red star'
done <<'RUNS'
2 tensor2
3 ulysses4
4 hybrid:cfg2.ring2
2 pipeline2
RUNS

# Tokens, as many parts as ranks, if nothing is said.
expect 0 '' "${mpirun[@]}" -n 2 "$SMALTI" generate -p a "${options[@]}" -q -o two/
"$SMALTI" generate -p a "${options[@]}" -q -o one/ --strategy patch2
cmp one/1.safetensors two/1.safetensors || fail 'patch2 is not what two ranks make by default'

# Only rank 0 has files, and its failures are said once.
expect 1 'nowhere: cannot be opened' "${mpirun[@]}" -n 2 "$SMALTI" generate -P nowhere
[ "$(grep -c nowhere err)" -eq 1 ] || fail "said by both: $(cat err)"
expect 1 'expected cfg of 2 at most' "${mpirun[@]}" -n 2 "$SMALTI" generate -p a --cpus 1 --strategy cfg3 -o x.png
expect 2 'does not run over several processes of MPI' "${mpirun[@]}" -n 2 "$SMALTI" decode two/1.safetensors
expect 1 'the ranks do not do the same' "${mpirun[@]}" -n 1 "$SMALTI" generate -p a --cpus 1 -o x.png : \
    -n 1 "$SMALTI" generate -p a --cpus 1 -o x.png --precision bf16
expect 2 'rank 1 on ' "${mpirun[@]}" -n 1 "$SMALTI" generate -p a --cpus 1 -o x.png : \
    -n 1 env STARPU_SCHED=nonsense "$SMALTI" generate -p a --cpus 1 -o x.png
[ ! -e x.png ] || fail 'an image, though the ranks differed'

# A full disk, where rank 0 writes.
mkdir full
expect 1 'No space left on device' "${mpirun[@]}" \
    -n 1 env SMALTI_FAULT=full:1+ SMALTI_FAULT_IN=full LD_PRELOAD="$(dirname "$SMALTI")/.libs/libfault.so" \
    "$SMALTI" generate -P prompts "${options[@]}" -q -o full/ : -n 1 "$SMALTI" generate -P prompts "${options[@]}" -q -o full/
[ -z "$(files full)" ] || fail "left behind: $(files full)"

# die NAME SIGNAL: rank 1 gets it when an image is there; soon all have ended, and what is there is whole.
die() {
    local process tries
    local command=("$SMALTI" generate -P many "${options[@]}" --strategy patch2 -q -o "$1/")
    "${mpirun[@]}" -n 1 "${command[@]}" : -n 1 sh -c 'echo $$ >pid && exec "$@"' sh "${command[@]}" >said 2>&1 &
    process=$!
    for ((tries = 0; tries < 600; tries++)); do
        [ -z "$(find "$1" -name '*.png' 2>/dev/null)" ] || break
        sleep 0.1
    done
    kill "-$2" "$(cat pid)"
    local began=$SECONDS
    ! wait "$process" || fail "$1: all is well, though a rank has died"
    [ $((SECONDS - began)) -lt 20 ] || fail "$1: it took $((SECONDS - began)) s to end"
    while read -r image; do same_image "$image" "whole/${image##*/}"; done < <(find "$1" -name '*.png')
}

# same_image IMAGE IMAGE: with their latents.
same_image() {
    cmp "$1" "$2" || fail "$1 is not $2"
    cmp "${1%.png}.safetensors" "${2%.png}.safetensors" || fail "the latents of $1 are not those of $2"
}

for i in {1..12}; do echo "a red star $i"; done >many
"$SMALTI" generate -P many "${options[@]}" --strategy patch2 -q -o whole/
die killed KILL
