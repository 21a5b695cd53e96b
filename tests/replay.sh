#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `--sched replay:FILE`: every task on the worker of the file, in its order, and the same bits; what is of another run is refused.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

# plan TRACE FILE WORKERS: a schedule in the order of insertion, on the workers in turns.
plan() {
    python3 - "$@" <<'PYTHON'
import json, sys
trace = json.load(open(sys.argv[1]))["traceEvents"]
names = [one["args"]["name"] for one in trace if one["name"] == "thread_name"]
tasks = sorted((one["args"]["number"], one["name"]) for one in trace if one.get("cat") == "task")
workers = [int(worker) for worker in sys.argv[3].split(",")]
with open(sys.argv[2], "w") as file:
    print(json.dumps({"format": "smalti-schedule", "version": 1, "tasks": len(tasks), "workers": names}), file=file)
    for number, name in tasks:
        print(json.dumps({"task": number, "name": name, "worker": workers[number % len(workers)]}), file=file)
PYTHON
}
# followed TRACE FILE: the run did what the file says.
followed() {
    python3 - "$@" <<'PYTHON' || fail "$1 did not follow $2"
import json, sys
ran, planned = {}, {}
for one in sorted((one for one in json.load(open(sys.argv[1]))["traceEvents"] if one.get("cat") == "task"),
                  key=lambda one: (one["ts"], one["args"]["number"])):
    ran.setdefault(one["tid"], []).append(one["args"]["number"])
for line in open(sys.argv[2]).readlines()[1:]:
    task = json.loads(line)
    planned.setdefault(task["worker"], []).append(task["task"])
assert ran == planned
PYTHON
}

image=("$SMALTI" generate -p 'a red star' --size 64x48 --steps 2 --cpus 2 --quiet)
"${image[@]}" --trace run.json -o plain.png
for workers in 0,1 1,1,0 1; do
    plan run.json plan.jsonl $workers
    "${image[@]}" --sched replay:plan.jsonl --trace replayed.json -o replayed.png
    followed replayed.json plan.jsonl
    cmp plain.png replayed.png || fail "$workers: the bits differ"
done

plan run.json plan.jsonl 0,1
refuse 1 'found' "${image[@]}" --steps 3 --sched replay:plan.jsonl -o other.png
refuse 1 'expected' "${image[@]}" --grain operation --sched replay:plan.jsonl -o other.png
refuse 2 'expected 2 workers, found 1' "${image[@]}" --cpus 1 --sched replay:plan.jsonl -o other.png
sed 's/"CPU 1"/"CPU 7"/' plan.jsonl >named.jsonl
refuse 2 "expected worker 1 to be 'CPU 7', found 'CPU 1'" "${image[@]}" --sched replay:named.jsonl -o other.png
sed '$ s/"name": "[^"]*"/"name": "nosuch"/' plan.jsonl >names.jsonl
refuse 1 "expected 'nosuch' as task" "${image[@]}" --sched replay:names.jsonl -o other.png
head -n 9 plan.jsonl >short.jsonl
refuse 1 'found 8: the file is cut short' "${image[@]}" --sched replay:short.jsonl -o other.png
refuse 1 'nosuch.jsonl' "${image[@]}" --sched replay:nosuch.jsonl -o other.png
[ ! -e other.png ] || fail "a run that was not replayed made an image"

# A task that has its turn before one that it waits for: in simulated time a minute is over at once.
simulate=("$SMALTI" simulate --machine 2xA100-NVLink --steps 1 --precision f16)
if "${simulate[@]}" --sched dmdas --trace run.json >/dev/null 2>&1; then
    "${simulate[@]}" --sched replay:nosuch.jsonl >/dev/null 2>err && fail "a file that is not there"
    plan run.json plan.jsonl 2,3
    "${simulate[@]}" --sched replay:plan.jsonl --trace replayed.json >/dev/null
    followed replayed.json plan.jsonl
    (head -n 1 plan.jsonl && tail -n +2 plan.jsonl | tac) >reversed.jsonl
    expect 2 'which does not become ready' "${simulate[@]}" --sched replay:reversed.jsonl
fi
