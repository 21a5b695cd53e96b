#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/slurm under a SLURM of its own, a slurmctld and a slurmd in a temporary directory: an array of three extractions,
# of which one's time ends, one is killed and put back into the queue; then all rows are there as if nothing had happened.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=ranks.sh
. "$(dirname "$0")/ranks.sh"
rows=${SMALTI%/*}/tests/store_worker
scripts=$(realpath "$(dirname "$0")/../scripts/slurm")
cd "$work"
PATH=$PATH:/usr/sbin

for tool in slurmctld slurmd sbatch scancel scontrol squeue; do
    command -v $tool >/dev/null && continue
    echo "SLURM: skipped: $tool is not installed (Debian: slurm-wlm)"
    exit 77
done

# One node that is this machine, for anybody's jobs without asking; all its files lie here.
mkdir state spool
ports=$(python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[one.getsockname()[1] for one in held])')
export SLURM_CONF=$work/slurm.conf
cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports% *}
SlurmdPort=${ports#* }
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
GresTypes=gpu
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=4 Gres=gpu:1 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=60 State=UP
CONF

echo 'Name=gpu File=/dev/null' >gres.conf # none that computes: it is given to jobs

daemons=()
# shellcheck disable=SC2317 # called by the trap
end_slurm() {
    scancel --quiet --full --signal=KILL --user="$(id -un)" 2>/dev/null || true
    kill "${daemons[@]}" 2>/dev/null || true
    wait "${daemons[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap end_slurm EXIT
slurmctld -D -i >slurmctld.log 2>&1 &
daemons+=($!)
slurmd -D >slurmd.log 2>&1 &
daemons+=($!)

# until_true WHAT COMMAND...: waits for it, long enough for any machine, and says where SLURM was when it is not.
until_true() {
    local what=$1 tries
    shift
    for ((tries = 0; tries < 1200; tries++)); do
        ! "$@" 2>/dev/null || return 0
        kill -0 "${daemons[@]}" 2>/dev/null || break
        sleep 0.1
    done
    squeue -t all >&2 || true
    tail -n 20 slurmctld.log slurmd.log ./*-*.log >&2
    fail "$what"
}

# is STATE JOB: in the words of squeue -t (several with commas), all tasks of it.
is() {
    local states
    states=$(squeue -h -r -t all -j "$2" -o %T) && [ -n "$states" ] && ! grep -vqE "^(${1//,/|})$" <<<"$states"
}

# submit SCRIPT OPTION OF SBATCH... -- ARGUMENT...: the number of the job.
submit() {
    local script=$scripts/$1.sbatch options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    sbatch --parsable --cpus-per-task=1 ${options[@]+"${options[@]}"} "$script" "${@:2}"
}

# soon JOB: it need not wait for the two minutes after which SLURM would start it again; but a node refuses a job that
# begins in the second in which it ended.
soon() {
    until_true "job $1 is not put back" is PENDING "$1"
    scontrol update jobid="$1" starttime=now+2
}

node_is_up() {
    [ "$(sinfo -h -o %t)" = idle ]
}
until_true 'the node does not come up' node_is_up

# Of the first start of each task: the first stops where it works, so that it is there when its time ends; the second is
# killed where it works. They follow each other, so that there is work for each.
cat >faulty <<COMMAND
#!/bin/sh
case \$SLURM_ARRAY_TASK_ID.\${SLURM_RESTART_COUNT:-0} in
0.0) SMALTI_FAULT=any-stop:40 ;;
1.0) SMALTI_FAULT=kill:40 ;;
esac
until [ -e "begin.\$SLURM_ARRAY_TASK_ID" ]; do sleep 0.1; done
echo \$\$ >"pid.\$SLURM_ARRAY_TASK_ID"
[ -z "\${SMALTI_FAULT:-}" ] || export SMALTI_FAULT SMALTI_FAULT_IN=shared LD_PRELOAD="${SMALTI%/*}/.libs/libfault.so"
exec "$SMALTI" "\$@"
COMMAND
chmod +x faulty

for ((i = 0; i < 1500; i++)); do echo "{\"id\": \"$i\", \"prompt\": \"a red star number $i\"}"; done >many.jsonl
arguments=(many.jsonl --t5 --shard-items 50 --quiet -o)
job=$(SMALTI=$work/faulty submit extract --array=0-2 -- "${arguments[@]}" shared)

stopped() {
    [ -s pid.0 ] && grep -qs '^State:.T' "/proc/$(cat pid.0)/status"
}
again() {
    grep -qsF 'it goes on in the queue' "smalti-extract-${job}_0.log" && is PENDING,RUNNING "${job}_0"
}
touch begin.0
until_true 'task 0 does not stop where it works' stopped
scancel --batch --signal=USR1 "${job}_0"
told() { # SLURM's signal has come through: one that is pending for a stopped process
    [ "$((0x$(sed -n 's/^ShdPnd:\t//p' "/proc/$(cat pid.0)/status") & 1 << 14))" -ne 0 ]
}
until_true 'task 0 is not told that its time is over' told
kill -CONT "$(cat pid.0)"
until_true 'task 0 does not put itself back' again

touch begin.1
until_true 'task 1 is not killed' is FAILED "${job}_1"
[ "$(find shared -name 'shard-*.h5' | wc -l)" -lt 30 ] || fail 'all was done before the work was shared'
touch begin.2
scontrol requeue "${job}_1"
soon "${job}_0"
soon "${job}_1"
until_true 'the array does not end' is COMPLETED "$job"
[ "$(grep -lF 'nothing is left to do' smalti-extract-*.log | wc -l)" -eq 3 ] || fail "$(tail smalti-extract-*.log)"

expect 0 '' "$SMALTI" verify shared
"$SMALTI" extract "${arguments[@]}" whole
"$rows" dump whole >whole.txt
"$rows" dump shared | cmp - whole.txt

# The other scripts, on a GPU by SLURM's books; and the ranks of one image.
small_config 2 16 >config.json
"$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 128 --range 0:3 -q -o features
image=(-p 'a red star' --size 64x64 --steps 2 --tile-tokens 8 --tile-rows 4 --strategy patch2 -q -o)
jobs=("$(submit generate --gres=gpu:1 -- "${image[@]}" one.png)")
jobs+=("$(submit train --gres=gpu:1 -- features --init config.json --steps 2 --batch 1 -q -o run)")
if for_mpi; then
    use_mpi 900
    jobs+=("$(submit generate --ntasks=2 -- "${image[@]}" ranks.png)")
fi
for job in "${jobs[@]}"; do until_true "job $job does not end" is COMPLETED "$job"; done
[ -d run/step-2 ] || fail "no checkpoint: $(files .)"
"$SMALTI" generate "${image[@]}" alone.png
for made in one.png $(! for_mpi || echo ranks.png); do cmp "$made" alone.png; done

# A training by two ranks, whose time ends: it puts itself back, and goes on to the bytes of one process.
if for_mpi; then
    steps=(features --init config.json --steps 400 --batch 2 --save-every 20 --strategy data2 --cpus 1 -q -o)
    job=$(submit train --ntasks=2 -- "${steps[@]}" spread)
    begun() { compgen -G 'spread/step-*' >begun; }
    until_true 'two ranks make no checkpoint' begun
    scancel --batch --signal=USR1 "$job"
    queued() { grep -qsF 'it goes on in the queue' "smalti-train-$job.log" && is PENDING,RUNNING "$job"; }
    until_true 'the training does not put itself back' queued
    soon "$job"
    until_true "job $job does not end" is COMPLETED "$job"
    "$SMALTI" train "${steps[@]}" alone
    same alone/step-400 spread/step-400
fi
