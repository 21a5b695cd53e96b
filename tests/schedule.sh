#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti-bench schedule`: all combinations, bounds below makespans, shares that make up the whole, a page that draws; real and
# simulated.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
mkdir temporary
export SMALTI TMPDIR=$work/temporary

schedule() {
    "$SMALTI_BENCH" schedule --steps 1 "$@" >out 2>err || fail "schedule $*: $(cat err)"
}
# whole FILE CASES: each line is a schedule.
whole() {
    python3 - "$1" "$2" <<'PYTHON' || fail "$(cat "$1")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])][1:]
assert len(lines) == int(sys.argv[2]), len(lines)
assert len({line["name"] for line in lines}) == len(lines)
for line in lines:
    bounds = line["area_bound"], line["path_bound"], line.get("linear_bound", 0)
    assert 0 < bounds[0] and 0 < bounds[1] and max(bounds) <= line["seconds"] * 1.0001, line
    shares = [line[key] for key in line if key == "busy" or key.startswith("idle_")]
    assert all(share >= 0 for share in shares) and abs(sum(shares) - 1) < 0.01, line
    assert line["least"] <= line["seconds"] and line["tasks"] > 100
PYTHON
}

schedule --sched lws,locality --cpus 1,2 --grain operation --repeats 1 --warm 0 -o real.jsonl --page page.html
whole real.jsonl 4
grep -q '"name":"sched locality, grain operation, cpus 2"' real.jsonl || fail "names: $(cat real.jsonl)"
grep -q '"report":"schedules"' page.html || fail "no data in the page"
schedule --sched lws --cpus 1 --grain operation --repeats 2 --warm 0 --compare real.jsonl
grep -q 'the geometric mean of 1 is' out || fail "compared: $(cat out)"

# A signal ends it.
"$SMALTI_BENCH" schedule --steps 100 >out 2>err &
process=$!
until compgen -G 'temporary/*/said' >found; do
    kill -0 $process || fail "it ended: $(cat err)"
    sleep 0.1
done
kill -INT $process
status=0
wait $process || status=$?
[ $status -eq 1 ] || fail "status $status after SIGINT"
grep -q 'stopped by SIGINT' err || fail "no words after SIGINT: $(cat err)"

# planned FILE: the plan is above its bounds, and the causes make up what the run took longer.
planned() {
    python3 - "$1" <<'PYTHON' || fail "$(cat "$1")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])][1:]
assert len(lines) == 1
for line in lines:
    assert 0 < line["bound"] <= line["planned"] * 1.0001 and line["inserted_bound"] <= line["planned"] * 1.0001, line
    causes = sum(line[key] for key in line if key.startswith("regret_"))
    assert abs(line["seconds"] - line["planned"] - causes) < 1e-6 and line["replayed"] > 0, line
PYTHON
}
schedule --optimal --sched lws --cpus 2 --repeats 1 --warm 0 -o planned.jsonl --page regret.html
planned planned.jsonl
grep -q '"regret":{' regret.html || fail "no regret in the page"
grep -q ', replayed"' regret.html || fail "no replay in the page"
"$SMALTI_BENCH" schedule --optimal --sched lws --cpus 2 --repeats 1 --warm 0 -o planned.jsonl -- \
    generate -p 'a ring' --size 64x64 --steps 1 --quiet -o image.png >/dev/null || fail "a command"
planned planned.jsonl
refuse 2 "leave --machine or 'train' out" "$SMALTI_BENCH" schedule --machine 32-cores -- train

expect 1 "policy 'fast' is not known" "$SMALTI_BENCH" schedule --sched fast
refuse 2 'memory-limit is of this machine' "$SMALTI_BENCH" schedule --machine 32-cores --memory-limit 1G
refuse 2 'opencl is of this machine' "$SMALTI_BENCH" schedule --machine 32-cores --opencl 1
[ -z "$(find temporary -name 'smalti-schedule*')" ] || fail "a directory is left behind"

if command -v chromium >/dev/null; then
    chromium --headless --no-sandbox --disable-gpu --dump-dom "file://$work/page.html" >dom 2>/dev/null || fail "the page is not drawn"
    grep -q '<h1>Schedules on this machine</h1>' dom || fail "no title"
    [ "$(grep -o '<canvas' dom | wc -l)" -eq $((2 + 3 * 4)) ] || fail "$(grep -o '<canvas' dom | wc -l) drawings"
fi

if "$SMALTI" simulate --machine 32-cores --steps 1 --json >/dev/null 2>&1; then
    schedule --machine A100-L40-T4 --sched dmdas,locality --precision f16 -o simulated.jsonl
    grep -qx 'A100-L40-T4, simulated' out || fail "no machine: $(head -n 2 out)"
    whole simulated.jsonl 2
    schedule --optimal --machine A100-L40-T4 --sched dmdas --precision f16 -o planned.jsonl
    planned planned.jsonl
fi
