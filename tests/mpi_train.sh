#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training over the processes of an MPI job: under every kind of strategy the checkpoints are, to the byte, those of one
# process; runs go on with another number of ranks; what fails on one rank ends all with one message, and leaves the last
# checkpoint.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=ranks.sh
. "$(dirname "$0")/ranks.sh"
cd "$work"

if ! for_mpi; then
    echo 'training over MPI: skipped: this was built without MPI'
    exit 77
fi
use_mpi 600

data=$SMALTI_TESTDATA/extract/InternData/data_info.json
"$SMALTI" extract "$data" -k prompt --img-size 256 --shard-items 5 --range 0:3 -q -o features
small_config 2 16 >config.json
steps=4
[ -z "${SMALTI_TEST_FULL:-}" ] || steps=50
train=("$SMALTI" train features --init config.json --steps "$steps" --batch 3 --lanes 2 --warmup 2 --lr 1e-3 --save-every 2 --ema 0.9
    --tile-tokens 64 --cpus 1 -q)

# same_runs ONE OTHER: all checkpoints, file by file.
same_runs() {
    local step
    [ "$(cd "$1" && echo step-*)" = "$(cd "$2" && echo step-*)" ] || fail "$2: checkpoints $(ls "$2"), of one process $(ls "$1")"
    for step in "$1"/step-*; do same "$step" "$2/${step##*/}"; done
}

# spread RANKS OPTION...: the same files as of one process.
spread() {
    rm -rf alone spread
    expect 0 '' "${train[@]}" "${@:2}" -o alone
    expect 0 '' "${mpirun[@]}" -n "$1" "${train[@]}" "${@:2}" -o spread
    same_runs alone spread
    [ "$(grep -c '"loss"' spread/log.jsonl)" -eq $steps ] || fail "$*: not $steps steps in the log"
}
spread 2 --strategy data2
spread 2 --strategy patch2 --recompute block
spread 2 --strategy ring2 --precision bf16
spread 2 --strategy tensor2
spread 3 --strategy data3 --optimizer came
expect 0 '' "${mpirun[@]}" -n 3 "${train[@]}" --strategy data3 --optimizer came --shares 2:1:1 -o shares
same "alone/step-$steps/transformer" "shares/step-$steps/transformer"
spread 4 --strategy hybrid:data2.patch2

# The traces of two processes describe them as two nodes, on which a step is simulated.
expect 0 '' "${mpirun[@]}" -n 2 "${train[@]}" --save-every 0 --strategy data2 --trace trace -o traced
expect 0 '' "$SMALTI" simulate --measured trace,trace.1 --calibrate nodes.json
python3 -c '
import json
machine = json.load(open("nodes.json"))
assert machine["nodes"]["count"] == 2 and machine["nodes"]["network_gbs"] > 0 and machine["gpus"][0]["count"] == 2' || fail "$(cat nodes.json)"
predict=("$SMALTI" train features --steps 3 --batch 2 --cpus 1 --save-every 0 --strategy data2 -o predicted --predict)
expect 1 '2 processes, but 32-cores has 0 places' "${mpirun[@]}" -n 2 "${predict[@]}" 32-cores
[ ! -e predicted ] || fail "training began without its prediction"
if [ -x "${SMALTI_SIM:-$(dirname "$SMALTI")/../build-simgrid/smalti-sim}" ]; then
    expect 0 'a step: ' "${mpirun[@]}" -n 2 "${predict[@]}" ./nodes.json
    [ "$(grep -c '"predicted":{"machine":"calibrated","seconds":' predicted/log.jsonl)" -eq 1 ] || fail "log: $(cat predicted/log.jsonl)"
fi

# The most tiles of each rank are those that were planned, with layers one after the other.
planned() {
    rm -rf planned
    expect 0 '' "${mpirun[@]}" -n "$1" "${train[@]}" --save-every 0 --recompute block "${@:2}" -o planned
    python3 - planned/log.jsonl "$1" <<'END_OF_PROGRAM' || fail "$*: $(grep '"loss"' planned/log.jsonl)"
import json, sys
steps = [json.loads(line).get("tiles", []) for line in open(sys.argv[1])]
for rank in zip(*filter(None, steps)):
    most = max(step["used"] / step["planned"] for step in rank)
    print(f"{rank[0]['planned']} bytes planned, {100 * most:.1f} % used")
    assert 0.9 <= most <= 1.1
assert len(steps[1]) == int(sys.argv[2])
END_OF_PROGRAM
}
small_config 8 64 >config.json
planned 2 --strategy data2 --batch 8 --lanes 4 --micro 2
planned 2 --strategy patch2 --batch 2 --lanes 1 --micro 1
planned 2 --strategy ring2 --batch 2 --lanes 1 --micro 1
planned 2 --strategy tensor2 --batch 2 --lanes 1 --micro 1
small_config 2 16 >config.json

# All ranks choose the plan that fits each of them, here the last one, which has more samples; where none does, nothing is begun.
small_config 4 64 >config.json
limited=("$SMALTI" train features --init config.json --batch 8 --lanes 4 --micro 8 --ema 0 --cpus 1 --tile-tokens 16 --steps 1)
auto() {
    rm -rf auto
    expect "$2" "$3" "${mpirun[@]}" -n 2 "${limited[@]}" --strategy data2 --shares 1:3 --recompute auto --memory-limit "$1M" -o auto
}
expect 0 '' "${limited[@]}" -q -o kept
auto 1 2 'MB or more'
least=$(sed -n 's/.*expected \([0-9]*\) MB or more.*/\1/p' err)
auto "$least" 1 'needs '
needed() { sed -n 's/.* needs \([0-9]*\) MB .*/\1/p' err; }
auto "$(needed)" 1 'rank 1'
needed=$(needed)
[ -z "$(find auto -name 'step-*')" ] || fail 'a checkpoint, though a rank has no memory for a step'
auto "$needed" 0 'at most: '
! grep -q 'at most: 0 of' err || fail "nothing is computed again: $(cat err)"
same kept/step-1/transformer auto/step-1/transformer
small_config 2 16 >config.json

# What each rank sends in a step: the gradients that others own, and the new weights that it owns, which is all of them once.
# sent STEPS: bytes of both ranks.
sent() {
    STARPU_MPI_STATS=1 "${mpirun[@]}" -n 2 "${train[@]}" --strategy data2 --steps "$1" --save-every 0 --ema 0 -o "sent$1" >sent 2>&1 ||
        fail "$(cat sent)"
    awk '/comm_stats\]\[.*TOTAL/ { all += $3 } END { printf "%.0f\n", all }' sent
}
python3 - "$(sent 2)" "$(sent 6)" sent6/step-6/transformer/diffusion_pytorch_model.safetensors <<'END_OF_PROGRAM'
import json, struct, sys
file = open(sys.argv[3], "rb")
header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
weights = sum(tensor["data_offsets"][1] - tensor["data_offsets"][0] for name, tensor in header.items() if name != "__metadata__")
step = (int(sys.argv[2]) - int(sys.argv[1])) / 4
print(f"{step:.0f} bytes of both ranks in a step, by the formula {2 * weights}")
assert abs(step / (2 * weights) - 1) < 0.02, step
END_OF_PROGRAM

# Evaluation, and samples for every rank, if nothing is said.
expect 0 '' "${mpirun[@]}" -n 2 "${train[@]}" --held-out features --held-out-items 2 --evaluate-every 2 -o two
expect 0 '' "${train[@]}" --strategy data2 --held-out features --held-out-items 2 --evaluate-every 2 -o one
diff <(grep '"evaluation"' one/log.jsonl) <(grep '"evaluation"' two/log.jsonl) || fail 'other evaluations than of one process'

# Damaged rows, which one rank finds, are left out by all.
"$SMALTI" extract "$data" -k prompt --img-size 256 --shard-items 2 --range 0:6 -q -o damaged
shard=$(echo damaged/shard-*0002-*.h5)
printf 'damage' | dd of="$shard" bs=1 seek=$(($(stat -c %s "$shard") / 2)) conv=notrunc status=none
on_damage=("${train[@]/#features/damaged}" --strategy data2)
for what in refuse skip; do
    rm -rf alone spread
    status=$([ $what = skip ] || echo 1)
    expect "${status:-0}" "${status:+extract it again}" "${on_damage[@]}" --damaged $what -o alone
    expect "${status:-0}" "${status:+extract it again}" "${mpirun[@]}" -n 2 "${on_damage[@]}" --damaged $what -o spread
done
same_runs alone spread
[ "$(grep -c '"damaged"' alone/log.jsonl)" -eq "$(grep -c '"damaged"' spread/log.jsonl)" ] || fail 'damage is noted elsewhere'

# A run goes on with more ranks, and with one process.
rm -rf spread
for ranks in 1 2 4; do
    expect 0 '' "${mpirun[@]}" -n "$ranks" "${train[@]}" --strategy hybrid:data2.patch2 --keep 0 --steps $((ranks + 2)) -o spread
done
expect 0 '' "${train[@]}" --strategy hybrid:data2.patch2 --keep 0 --steps 6 -o long
same long/step-6 spread/step-6

# Ranks that differ, and what is one process's.
expect 2 'the ranks do not do the same' "${mpirun[@]}" -n 1 "${train[@]}" -o differ : -n 1 "${train[@]}" --seed 1 -o differ
[ -z "$(find differ -name 'step-*')" ] || fail 'a checkpoint, though the ranks differed'

# Sample images: those of one process. A disk that is full for them ends all with one message.
sampled=("${train[@]}" --strategy data2 --sample-every 2 --sample-prompt star --sample-prompt ring --sample-size 32x48
    --sample-steps 2)
expect 0 '' "${sampled[@]}" -o images
expect 0 '' "${mpirun[@]}" -n 2 "${sampled[@]}" -o images2
same images/samples images2/samples
rm -r images2
fault=(env SMALTI_FAULT=full:1+ SMALTI_FAULT_IN=images2/samples LD_PRELOAD="$(dirname "$SMALTI")/.libs/libfault.so")
expect 1 'No space left on device' "${mpirun[@]}" -n 1 "${fault[@]}" "${sampled[@]}" -o images2 : -n 1 "${sampled[@]}" -o images2
[ "$(grep -c 'No space' err)" -eq 1 ] || fail "said by both: $(cat err)"
expect 0 '' "${mpirun[@]}" -n 2 "${sampled[@]}" -o images2
same images/samples images2/samples

# A full disk, where rank 0 writes: the last checkpoint stays, and the run goes on from it.
rm -rf spread
fault=(env SMALTI_FAULT=full:1+ SMALTI_FAULT_IN=spread/.step-4.part LD_PRELOAD="$(dirname "$SMALTI")/.libs/libfault.so")
expect 1 'No space left on device' "${mpirun[@]}" -n 1 "${fault[@]}" "${train[@]}" --strategy data2 -o spread : \
    -n 1 "${train[@]}" --strategy data2 -o spread
[ "$(cd spread && echo step-*)" = step-2 ] || fail "behind a full disk: $(ls -A spread)"
expect 0 '' "${mpirun[@]}" -n 2 "${train[@]}" --strategy data2 -o spread
expect 0 '' "${train[@]}" --strategy data2 -o alone2
same_runs alone2 spread

# A rank that is killed ends all within seconds, and the run goes on; a signal to one rank stops all, behind a checkpoint. What
# comes of it is what an undisturbed process makes.
kills=2
[ -z "${SMALTI_TEST_FULL:-}" ] || kills=50
long=("${train[@]}" --steps 100000 --strategy data2 -o killed)
begin() {
    rm -f pid.*
    # shellcheck disable=SC2016 # the inner shell's variables
    "${mpirun[@]}" -n 2 sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK && exec "$@"' sh "${long[@]}" >said 2>&1 &
}
last_step() { ! [ -d killed ] || find killed -maxdepth 1 -name 'step-*' | sed 's,.*-,,' | sort -n | tail -n 1; }
# goes_on: until there is a later checkpoint than before.
goes_on() {
    local before=$1
    until [ "0$(last_step)" -gt "$before" ]; do
        kill -0 $! 2>kill.err || fail "it ended before there was a checkpoint: $(cat said)"
        sleep 0.1
    done
}
for ((kill = 0; kill < kills; kill++)); do
    before=$(last_step)
    begin
    goes_on "${before:-0}"
    sleep "0.$((RANDOM % 10))"
    kill -KILL "$(cat pid.$((RANDOM % 2)))"
    began=$SECONDS
    ! wait $! || fail 'all is well, though a rank was killed'
    ended_itself "$began"
done
before=$(last_step)
begin
goes_on "$before"
kill -TERM "$(cat pid.1)"
began=$SECONDS
! wait $! || fail 'all is well, though the run was stopped'
ended_itself "$began"
last=$(last_step)
expect 0 '' "${train[@]}" --strategy data2 --steps "$last" -o whole
same "whole/step-$last" "killed/step-$last"
