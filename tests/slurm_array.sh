#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/slurm/extract.sbatch and generate-share.sbatch without SLURM: tasks of an array that share a directory, whose time ends, which are
# cancelled and killed; then all rows are there once and as if nothing had happened.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
rows=${SMALTI%/*}/tests/store_worker
script=$(realpath "$(dirname "$0")")/../scripts/slurm/extract.sbatch
cd "$work"
export SMALTI

# scontrol that remembers what it was told.
mkdir bin
cat >bin/scontrol <<'END'
#!/usr/bin/env bash
echo "$*" >>"$REQUEUED"
END
chmod +x bin/scontrol
export PATH=$PWD/bin:$PATH REQUEUED=$PWD/requeued

# What the scripts share is the same in all.
for other in generate generate-share train; do
    cmp <(sed '1,/^# From here on/d' "$script") <(sed '1,/^# From here on/d' "${script%/*}/$other.sbatch")
done

# What a task of several is given: its CPUs, and its share of a node's memory.
printf '#!/bin/sh\necho "srun $*" >launched\n' >bin/srun
printf '#!/bin/sh\necho "smalti $*" >launched\n' >bin/smalti
chmod +x bin/srun bin/smalti
launches() { # EXPECTED VARIABLE...
    rm -f launched
    env SMALTI=smalti SLURM_JOB_ID=1 "${@:2}" bash "${script%/*}/generate.sbatch" -o x/ 2>err
    [ "$(cat launched)" = "$1 -o x/" ] || fail "${*:2}: $(cat launched err)"
}
run='smalti generate --resume'
launches "$run"
launches "$run --cpus 3 --memory-limit 900M" SLURM_NTASKS=1 SLURM_CPUS_PER_TASK=3 SLURM_MEM_PER_NODE=1000
launches "$run --cpus 3 --memory-limit 2700M" SLURM_CPUS_PER_TASK=3 SLURM_MEM_PER_CPU=1000
run="srun --mpi=pmix --cpus-per-task=32 $run --cpus 32 --memory-limit"
four=(SLURM_NTASKS=4 SLURM_CPUS_PER_TASK=32 SLURM_MEM_PER_NODE=65536)
launches "$run 58982M" "${four[@]}" SLURM_NNODES=4 SLURM_TASKS_PER_NODE='1(x4)'
launches "$run 14745M" "${four[@]}" SLURM_NNODES=1 SLURM_TASKS_PER_NODE=4
launches "$run 14745M" "${four[@]}" SLURM_NNODES=1
launches "$run 29491M" "${four[@]}" SLURM_NNODES=3 SLURM_TASKS_PER_NODE='1,2,1'
launches "$run 19660M" "${four[@]}" SLURM_NNODES=2 SLURM_TASKS_PER_NODE='3,1'
launches "$run 29491M" "${four[@]}" SLURM_NNODES=2
launches "$run 28800M" SLURM_NTASKS=4 SLURM_NNODES=1 SLURM_CPUS_PER_TASK=32 SLURM_MEM_PER_CPU=1000
launches 'srun --mpi=pmix smalti generate --resume' SLURM_NTASKS=2 SLURM_NNODES=2

# task NUMBER OF ARGUMENT...: as SLURM would start it.
task() {
    export SLURM_JOB_ID=$((100 + $1)) SLURM_ARRAY_JOB_ID=100 SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_COUNT=$2
    export SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=$(($2 - 1)) SLURM_CPUS_PER_TASK=1 SLURM_MEM_PER_NODE=4000
    shift 2
    exec bash "$script" "$@"
}

for ((i = 0; i < 3000; i++)); do echo "{\"id\": \"$i\", \"prompt\": \"a red star number $i\"}"; done >many.jsonl
arguments=(many.jsonl --t5 --shard-items 50 --quiet -o)
"$SMALTI" extract "${arguments[@]}" whole
"$rows" dump whole >whole.txt

shards() {
    find "$1" -name 'shard-*.h5' 2>/dev/null | wc -l
}
wait_for_rows() {
    until [ "$(shards "$1")" -ge "$2" ]; do sleep 0.02; done
}

# The time of one task ends, another is cancelled, a third one is killed with all it has started.
(task 0 3 "${arguments[@]}" shared) 2>err-0 &
first=$!
(task 1 3 "${arguments[@]}" shared) 2>err-1 &
second=$!
setsid bash -c "$(declare -f task); script=$script; task 2 3 ${arguments[*]} shared" 2>err-2 &
third=$!
wait_for_rows shared 3
kill -USR1 $first
kill -TERM $second
kill -KILL -- -$third
status=0
wait $first || status=$?
if [ $status -ne 0 ] || [ "$(cat requeued 2>/dev/null)" != 'requeue 100' ]; then
    grep -qF 'nothing is left' err-0 || fail "USR1: status $status: $(cat err-0)"
fi
status=0
wait $second || status=$?
[ $status -eq 1 ] || grep -qF 'nothing is left' err-1 || fail "TERM: status $status: $(cat err-1)"
[ "$(cat requeued)" = 'requeue 100' ] || fail "put back: $(cat requeued)"
wait $third 2>/dev/null || true

# They begin again, and end.
(task 0 3 "${arguments[@]}" shared) 2>err-0 &
first=$!
(task 2 3 "${arguments[@]}" shared) 2>err-2
wait $first
grep -qF 'task 0 of job 100: nothing is left to do' err-0 || fail "$(cat err-0)"
"$rows" dump shared | cmp - whole.txt

# A task that has gone on too often does not go on.
(SLURM_RESTART_COUNT=7 SMALTI_RESTARTS=7 task 0 1 "${arguments[@]}" often) 2>err-0 &
first=$!
wait_for_rows often 1
kill -USR1 $first
status=0
wait $first || status=$?
[ $status -eq 1 ] || fail "status $status after the last restart: $(cat err-0)"
[ "$(wc -l <requeued)" -eq 1 ] || fail "put back: $(cat requeued)"

# Even parts, each done by its own task; of an array with gaps that cannot be told.
for part in 0 1 2; do
    (SMALTI_SPLIT=yes task $part 3 "${arguments[@]}" parts) 2>err-$part
done
"$rows" dump parts | cmp - whole.txt
[ -e parts/shard-000000001000-000000001050.h5 ] || fail "no part begins at item 1000: $(files parts)"
status=0
(
    export SMALTI_SPLIT=yes SLURM_ARRAY_TASK_STEP=2
    task 0 3 "${arguments[@]}" gaps
) 2>err-0 || status=$?
[ $status -eq 2 ] || fail "gaps: status $status: $(cat err-0)"
grep -qF 'the array has gaps' err-0
[ ! -e gaps ] || fail "made $(files gaps)"

# Images of one list: the time of one task ends, and another makes what is left.
script=${script%/*}/generate-share.sbatch
for ((i = 0; i < 60; i++)); do echo "{\"prompt\": \"a red star\", \"seed\": $i}"; done >prompts.jsonl
"$SMALTI" generate -P prompts.jsonl --steps 1 -s 32x32 -q -o whole-images/
(task 0 2 -P prompts.jsonl --steps 1 -s 32x32 -q -o images/) 2>err-0 &
first=$!
until [ -e images/1.png ]; do sleep 0.02; done
kill -USR1 $first
(task 1 2 -P prompts.jsonl --steps 1 -s 32x32 -q -o images/) 2>err-1
wait $first || fail "status $?: $(cat err-0)"
diff -r -x .share whole-images images
grep -qF 'task 1 of job 100: nothing is left to do' err-1 || fail "$(cat err-1)"
script=${script%/*}/extract.sbatch

# Items that fail do not fail the job, wrong options do.
printf '%s\n' '{"id": "1", "prompt": "a ring"}' '{"id": "2"}' >bad.jsonl
(task 0 1 bad.jsonl --t5 --quiet -o bad) 2>err-0 || fail "status $?: $(cat err-0)"
grep -qF 'items that failed' err-0 || fail "$(cat err-0)"
status=0
(task 0 1 bad.jsonl --t5 --nonsense -o bad) 2>err-0 || status=$?
[ $status -eq 2 ] || fail "status $status: $(cat err-0)"
