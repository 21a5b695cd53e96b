#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti train` on PoCL's devices: steps are a CPU's but for rounding, those of a strategy have the same bits under every
# policy and by any number of replicas, and no more moves than the plan says. SMALTI_TEST_FULL=1: more of each.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
export POCL_DEVICES='basic basic basic'
use_pocl 'training on devices'
export POCL_DEVICES='basic basic basic'
if sanitized; then
    echo 'skipped under sanitizers, which make devices slow: test_train_places and test_strategies do the same'
    exit 77
fi
cd "$work"

"$SMALTI" extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" -k prompt --img-size 128 -q -o features
small_config 4 48 >config.json

# run NAME OPTION...: two steps of four samples.
run() {
    local name=$1
    shift
    expect 0 '' "$SMALTI" train features --init config.json --steps 2 --batch 4 --lanes 4 --lr 1e-3 --ema 0 -q --cpus 1 \
        -o "$name" "$@"
}
# like NAME [CPU]: its losses and norms are the CPU's but for rounding.
like() {
    local cpu=${2:-cpu}
    python3 - "$cpu/log.jsonl" "$1/log.jsonl" <<'END_OF_PROGRAM' || fail "$1: other steps than a CPU's: $(cat "$cpu/log.jsonl" "$1/log.jsonl")"
import json, sys
steps = [[json.loads(line) for line in open(path) if '"loss"' in line] for path in sys.argv[1:]]
assert len(steps[0]) == len(steps[1]) == 2
for a, b in zip(*steps):
    for key in "loss", "norm":
        assert abs(a[key] - b[key]) <= 2e-5 * abs(a[key]), (key, a[key], b[key])
END_OF_PROGRAM
}
# weights NAME NAME: of the same bits.
weights() {
    cmp "$1"/step-2/transformer/*.safetensors "$2"/step-2/transformer/*.safetensors || fail "$1 and $2: other weights"
}

run cpu
run came-cpu --optimizer came
run dmda --opencl 2 --sched dmda
like dmda
run came --opencl 1 --sched eager --optimizer came --precision bf16
[ -d came/step-2 ] || fail "no weights by CAME"

run data2 --opencl 2 --strategy data2 --sched dmda
like data2
python3 - data2/log.jsonl <<'END_OF_PROGRAM' || fail "memory of devices in steps: $(cat data2/log.jsonl)"
import json, sys
steps = [json.loads(line) for line in open(sys.argv[1])]
most = {device["name"]: device["peak_memory"] for device in steps[-1]["devices"]}
assert len(most) == 2
for step in steps:
    if "loss" in step:
        used = {device["name"]: device["used_memory"] for device in step["devices"]}
        assert used.keys() == most.keys() and all(0 < used[name] <= most[name] for name in used), used
END_OF_PROGRAM
"$SMALTI" report data2 -o page.html >said
grep -q '"device_memory","device_utilisation"\]' page.html || fail "no memory of devices on the page"
run data2-eager --opencl 2 --strategy data2 --sched eager --micro 1
weights data2 data2-eager
run patch3 --opencl 3 --strategy patch3
like patch3
run hybrid --opencl 2 --strategy hybrid:data2.ring2 --recompute block
like hybrid
run tensor2 --opencl 2 --strategy tensor2 --sched dmda
like tensor2
if [ -n "${SMALTI_TEST_FULL:-}" ]; then
    run data1 --opencl 1 --strategy data1
    weights data2 data1
    run tensor2-eager --opencl 2 --strategy tensor2 --sched eager --micro 1
    weights tensor2 tensor2-eager
    run tensor2-lws --opencl 2 --strategy tensor2 --sched lws
    weights tensor2 tensor2-lws
    run tensor3 --opencl 3 --strategy tensor --recompute block
    like tensor3
    run hybrid-tensor --opencl 2 --strategy hybrid:data2.tensor2
    weights hybrid-tensor tensor2
    run tensor2-stopped --opencl 2 --strategy tensor2 --steps 1
    run tensor2-stopped --opencl 2 --strategy tensor2
    weights tensor2-stopped tensor2
fi
expect 1 'came' "$SMALTI" train features --init config.json --strategy tensor2 --optimizer came -o other
expect 1 'smalti train' "$SMALTI" generate -p a -s 64x64 --strategy data2 -o a.png
expect 1 'training is spread by' "$SMALTI" train features --init config.json --strategy ulysses2 -o other
expect 2 '--strategy' "$SMALTI" train features --init config.json --steps 2 --batch 4 --lanes 4 --lr 1e-3 --ema 0 -q \
    --strategy patch2 -o patch3

# As many blocks are computed again as the devices' memory wants.
tune() {
    local name=$1
    shift
    expect 0 '' "$SMALTI" train features --steps 2 --batch 4 --lanes 2 --micro 4 --ema 0 --cpus 1 -o "$name" "$@"
}
tune base
for memory in 400 100 60; do
    STARPU_LIMIT_OPENCL_MEM=$memory tune "$memory" --opencl 1 --sched dmda --recompute auto
    grep -q "a device's memory of $((memory / 2)) at most" err || fail "room on a device of $memory MB: $(cat err)"
    sed -n 's/.*at most: \([0-9]*\) of 6 blocks.*/\1/p' err >>blocks
    like "$memory" base
done
grep -q 'the rest moves to main memory' err || fail "nothing is said of what moves: $(cat err)"
case "$(tr '\n' ' ' <blocks)" in
'0 '[1-5]' 6 ') ;;
*) fail "blocks computed again: $(cat blocks)" ;;
esac
# Under a strategy each device needs what it holds: both have room for its half, where one has none for all.
STARPU_LIMIT_OPENCL_MEM=100 tune halves --opencl 2 --strategy data2 --recompute auto
grep -q "a device's memory of 50 at most: 0 of 6 blocks" err || fail "halves of a step: $(cat err)"
like halves base

# Into all devices together: each gradient to where its parameter is updated, and the values from there, n − 1 times.
moved() {
    "$SMALTI" train features --init config.json --steps "$2" --batch 3 --lanes 3 --ema 0 -q --cpus 1 --opencl "$1" \
        --strategy "data$1" --caption-dropout 1 -o "moved-$1-$2" --trace trace-"$1-$2" || fail "training"
    python3 -c "
import json, sys
print(sum(link['bytes'] for link in json.load(open(sys.argv[1]))['transfers'] if link['to'] > 0))" "trace-$1-$2"
}
bytes=$(wc -c <data2/step-2/transformer/diffusion_pytorch_model.safetensors)
for devices in 2 ${SMALTI_TEST_FULL:+3}; do
    found=$((($(moved "$devices" 3) - $(moved "$devices" 1)) / 2))
    python3 - "$found" $((2 * bytes * (devices - 1))) <<'END_OF_PROGRAM' || fail "data$devices: other bytes than planned"
import sys
found, planned = map(int, sys.argv[1:])
samples = 3 * 3 * 4 * 4 * 16 * 16  # noisy latents and the gradient of the result, twice as long
print(f"{found} bytes to devices in a step, {planned + samples} planned")
sys.exit(abs(found - planned - samples) > 0.02 * planned)
END_OF_PROGRAM
done
