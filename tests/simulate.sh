#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti simulate`: the same numbers again, bounds, more and faster devices, memory, policies, strategies, messages.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

refuse 2 '--machine is missing' "$SMALTI" simulate
refuse 1 "no machine is called 'nowhere'" "$SMALTI" simulate --machine nowhere
refuse 1 "cannot be opened" "$SMALTI" simulate --machine ./nowhere.json
SMALTI_SIM=$work/nowhere expect 1 'cannot be run' "$SMALTI" simulate --machine 1xA100-PCIe
expect 0 '' "$SMALTI" simulate --machines
grep -q '^2x8xH100-InfiniBand  *8 CPUs, 16 x H100 80 GiB, NVLink, 2 nodes$' out || fail "machines: $(cat out)"
grep -q '^8xA100-NVLink  *8 CPUs, 8 x A100 79 GiB, NVLink$' out || fail "machines: $(cat out)"

# The machine of a trace: tasks of 10 us and what their operations take, on two cores of 2 TFLOP/s and an A100.
python3 - <<'PYTHON'
import json
workers = ["CPU 0", "CPU 1", "CUDA 0.0 (A100 39.2 GiB)"]
rates = [(2e12, 1e12, 4e12, 1e10)] * 2 + [(1e14, 5e13, 1e14, 1e12)]  # products, convolutions, attention, bytes
events = [{"ph": "M", "tid": i, "name": "thread_name", "args": {"name": name}} for i, name in enumerate(workers)]
def task(worker, name, flops, size, seconds):
    events.append({"cat": "task", "name": name, "tid": worker, "dur": 1e6 * seconds, "args": {"key": 1, "flops": flops, "bytes": size}})
for worker, (products, convolutions, attention, size) in enumerate(rates):
    for times in 0, 3, 9:
        task(worker, "matmul", times * 1e9 + 1, 1e5, 1e-5 + times * 1e9 / products)
        task(worker, "conv", times * 1e9 + 1, 1e5, 1e-5 + times * 1e9 / convolutions)
        task(worker, "attention", times * 1e9 + 1, 1e5, 1e-5 + times * 1e9 / attention)
        task(worker, "gelu", 1e3, times * 1e6 + 1e3, 1e-5 + times * 1e6 / size)
    task(worker, "block", 1e12, 1e3, 5)  # several operations tell of none
    task(worker, "prepare", 0, 1e6, 5)  # nor do files
trace = {"traceEvents": events, "memories": [64 << 30, 32 << 30],
         "links": [{"from": 0, "to": 1, "gbs": 20, "us": 8}, {"from": 1, "to": 0, "gbs": 25, "us": 9}]}
json.dump(trace, open("known.json", "w"))
json.dump(trace | {"memories": []}, open("place.json", "w"))
json.dump(trace | {"links": []}, open("unlinked.json", "w"))
json.dump(trace | {"traceEvents": [e for e in events if e["name"] in ("thread_name", "block")]}, open("few.json", "w"))
slow = [e | {"dur": e["dur"] * 1e3} if e["name"] == "gelu" else e for e in events]
json.dump(trace | {"traceEvents": slow}, open("slow.json", "w"))
for name, times in ("zero", 0), ("fast", 1e-9):
    json.dump(trace | {"traceEvents": [e | {"dur": e["dur"] * times} if "dur" in e else e for e in events]}, open(name + ".json", "w"))
ranks = {"ranks": {"count": 3, "gbs": 1.5, "us": 40}}
json.dump(trace | ranks, open("ranks.json", "w"))
json.dump(trace | ranks | {"traceEvents": [e for e in events if e["tid"] < 2], "links": [], "memories": [64 << 30]}, open("rank.json", "w"))
json.dump(trace | {"ranks": {"count": 3, "gbs": 0, "us": 40}}, open("unjoined.json", "w"))
json.dump(trace | {"ranks": {"count": 1e300, "gbs": 1, "us": 40}}, open("countless.json", "w"))
events[1]["args"]["name"] = "CUDA 1.0 (T4 14.0 GiB)"
json.dump(trace, open("heterogeneous.json", "w"))
PYTHON
expect 0 '' "$SMALTI" simulate --measured known.json,known.json --precision f16 --calibrate machine.json
python3 - <<'PYTHON' || fail "calibrated: $(cat machine.json)"
import json
machine = json.load(open("machine.json"))
gpu, = machine["gpus"]
def about(found, expected): return abs(found / expected - 1) < 0.02
for kind, count, name, memory, rates in (machine["cpus"], 2, "core", 64, (2, 1, 4, 10)), (gpu, 1, "A100", 32, (100, 50, 100, 1000)):
    assert (kind["count"], kind["name"]) == (count, name) and about(kind["memory_gib"], memory) and about(kind["launch_us"], 10), kind
    reached = [kind["tflops"][work]["f16"] for work in ("products", "convolutions", "attention")] + [kind["gbs"]]
    assert all(map(about, reached, rates)), (reached, rates)
assert gpu["tflops"]["convolutions"]["f32"] == gpu["tflops"]["convolutions"]["f16"], gpu  # in one of the two
assert machine["links"] == {"pcie_gbs": 20, "pcie_us": 9, "host_gbs": 40}, machine["links"]
PYTHON
# Memory is no slower than operands of attention came, whatever held up the rest.
expect 0 '' "$SMALTI" simulate --measured slow.json --precision f16 --calibrate machine.json
python3 -c 'import json; assert abs(json.load(open("machine.json"))["cpus"]["gbs"] / 0.1 - 1) < 0.02' || fail "slow: $(cat machine.json)"
# Each process of an MPI job is a node: its devices, or its two cores together.
while read -r file name products launch; do
    expect 0 '' "$SMALTI" simulate --measured "$file.json,$file.json" --precision f16 --calibrate machine.json
    python3 - "$name" "$products" "$launch" <<'PYTHON' || fail "$file: $(cat machine.json)"
import json, sys
machine = json.load(open("machine.json"))
gpu, = machine["gpus"]
def about(found, expected): return abs(found / expected - 1) < 0.02
assert machine["nodes"] == {"count": 3, "network_gbs": 1.5, "network_us": 40}, machine["nodes"]
assert gpu["count"] == 3 and gpu["name"].replace(" ", "-") == sys.argv[1] and machine["cpus"]["count"] == 2, machine
assert about(gpu["tflops"]["products"]["f16"], float(sys.argv[2])) and about(gpu["launch_us"], float(sys.argv[3])), gpu
PYTHON
done <<'RANKS'
ranks A100 100 10
rank 2-cores 4 5
RANKS
while IFS='|' read -r status words options; do
    # shellcheck disable=SC2086 # several words
    refuse "$status" "$words" "$SMALTI" simulate $options --calibrate no.json
    [ ! -e no.json ] || fail "$options: a machine was written"
done <<'REFUSED'
2|--calibrate needs --measured|
2|not one of --machine|--measured known.json --machine 32-cores
1|cannot be opened|--measured nowhere.json
1|products are of two precisions|--measured known.json --precision w8a8
1|devices that are not alike, 'T4' and 'A100'|--measured heterogeneous.json
1|no memory of CPUs|--measured place.json
1|no link between main memory and A100|--measured unlinked.json
1|too few operations on CPUs|--measured few.json
1|unjoined.json: "ranks": expected 2 to 128 processes and the link between them|--measured unjoined.json
1|"ranks": expected 2 to 128 processes|--measured countless.json
1|tasks on CPUs that take no time|--measured zero.json
1|fast.json: the tasks' times give no machine that can be simulated: "gbs"|--measured fast.json
REFUSED

# simulate OUTPUT OPTION...: a simulation's line of JSON.
simulate() {
    local output=$1
    shift
    "$SMALTI" simulate --json "$@" >"$output" 2>err || fail "simulate $*: $(cat err)"
}
# value FILE KEY
value() {
    grep -oE "\"$2\":[-+0-9.e]+" "$1" | head -n 1 | cut -d: -f2
}
# gpu_peak FILE: the most bytes that the first GPU has.
gpu_peak() {
    grep -oE '"peak":[0-9]+' "$1" | sed -n '2s/.*://p'
}
# less A B [FACTOR]: A is less than B times FACTOR.
less() {
    awk -v a="$1" -v b="$2" -v f="${3:-1}" 'BEGIN { exit !(a < b * f) }' || fail "line ${BASH_LINENO[0]}: $1 is not less than ${3:-1} x $2"
}

status=0
"$SMALTI" simulate --machine 32-cores --json >out 2>err || status=$?
if [ $status -ne 0 ]; then
    grep -q "scripts/build --simgrid" err || fail "$(cat err)"
    echo "SKIP: there is no smalti-sim (scripts/build --simgrid)"
    exit 77
fi

"$SMALTI" simulate --measured known.json --precision f16 --calibrate machine.json
simulate calibrated --machine ./machine.json --precision f16 --steps 1

# Bounds, and the same to the last digit, whatever the policy and the strategy; of more memories than an integer has bits, too.
sed 's/"count": 1,/"count": 33,/' "$(dirname "$SMALTI_TESTDATA")/../machines/1xA100-PCIe.json" >many.json
while read -r name options; do
    # shellcheck disable=SC2086 # several words
    simulate "$name" $options
    # shellcheck disable=SC2086
    simulate again $options
    cmp "$name" again || fail "$name: other numbers the second time"
    for bound in area_bound path_bound transfer_bound; do
        less "$(value "$name" $bound)" "$(value "$name" makespan)"
    done
    less 0 "$(value "$name" area_bound)"
done <<'CASES'
cores --machine 32-cores --steps 2 --size 512x512
core --machine 32-cores --steps 2 --size 512x512 --cpus 1
one --machine 1xA100-PCIe --steps 3 --size 512x512 --precision f16
dmda --machine A100-L40-T4 --steps 2 --sched dmda --precision f16
eager --machine A100-L40-T4 --steps 2 --sched eager --precision f16
ulysses --machine 4xA100-PCIe --steps 2 --strategy ulysses --precision f16
auto --machine 4xA100-NVLink --steps 2 --strategy auto --precision f16
displaced --machine 8xA100-NVLink --steps 3 --strategy displaced --precision f16
blocking --machine 4xA100-PCIe --steps 2 --strategy ring --precision f16 --blocking
batch --machine 2xA100-NVLink --steps 2 --images 3 --precision f16
slow --machine 4xT4 --steps 2 --strategy tensor --precision f16
random --machine 4xT4 --steps 2 --sched random --precision f16
locality --machine 8xL40 --steps 2 --sched locality --precision f16
pipeline --machine 4xA100-PCIe --steps 3 --strategy pipeline --precision f16
ethernet --machine 2x8xL40-Ethernet --steps 2 --strategy ring --precision f16 --tile-tokens 16
many --machine ./many.json --steps 1 --size 64x64 --strategy ring --precision f16
cluster --machine 2x8xH100-InfiniBand --steps 2 --strategy hybrid:cfg2.ring8 --precision f16 --tile-tokens 32 --blocking
CASES
# Beside such GPUs CPUs pack no weights for themselves; cores do. Without a policy they do what GPUs cannot, as in a run.
while read -r name options; do
    # shellcheck disable=SC2086 # several words
    simulate "$name" $options --trace "$name.trace" --model sigma-256 --steps 1 --precision f16 --tile-tokens 128
done <<'CASES'
cores_alone --machine 32-cores
gpus_alone --machine 4xA100-NVLink
with_cpus --machine 4xA100-NVLink --sched dmdas
CASES
less "$(value with_cpus decoding)" 0.02
python3 - <<'PYTHON' || fail "tasks that CPUs have beside GPUs: $(cat gpus_alone)"
import json
def tasks(name): return [e for e in json.load(open(name + ".trace"))["traceEvents"] if e.get("cat") == "task"]
def packs(name): return sum(task["name"] == "prepare" for task in tasks(name))
def taken(name): return sum(task["tid"] >= 4 and task["args"]["expected"][1] is not None for task in tasks(name))
assert packs("cores_alone") > 0 and packs("gpus_alone") == packs("with_cpus") == 0, (packs("cores_alone"), packs("with_cpus"))
assert taken("gpus_alone") == 0 < taken("with_cpus"), (taken("gpus_alone"), taken("with_cpus"))
PYTHON
# Cores that are alike take as long under any policy of tasks that are ready, unless threads are late that want the same lock.
for policy in eager dmdas; do
    simulate "cores-$policy" --machine 32-cores --steps 2 --size 512x512 --sched $policy
done
less "$(value cores-dmdas makespan)" "$(value cores-eager makespan)" 1.05
# The bound by work is that of the GPUs that compute.
several=(--machine 2xA100-NVLink --model sigma-512 --steps 1 --images 2 --precision f16)
simulate with_two "${several[@]}"
simulate with_one "${several[@]}" --gpus 1
less "$(value with_two area_bound)" "$(value with_one area_bound)" 0.6

# Steps of training: the same to the last digit; what more samples, recomputing, precision, and a second GPU change.
while read -r name options; do
    # shellcheck disable=SC2086 # several words
    simulate "$name" train --model tiny $options
    # shellcheck disable=SC2086
    simulate again train --model tiny $options
    cmp "$name" again || fail "$name: other numbers the second time"
    less 0 "$(value "$name" step)"
    less "$(value "$name" step)" "$(value "$name" makespan)"
done <<'CASES'
four --machine 1xA100-PCIe --precision f16 --batch 4
eight --machine 1xA100-PCIe --precision f16 --batch 8
again_f16 --machine 1xA100-PCIe --precision f16 --batch 4 --recompute block
long --machine 1xA100-PCIe --precision f16 --batch 4 --steps 4
came --machine 1xA100-PCIe --precision f16 --batch 4 --optimizer came
two --machine 2xA100-NVLink --precision f16 --batch 4 --strategy data
one_lane --machine 2xA100-NVLink --precision f16 --batch 4 --strategy data --lanes 1
bands --machine 2xA100-NVLink --precision f16 --batch 2 --strategy patch --size 128x64
on_cores --machine 32-cores --precision f32 --batch 4 --size 64x64
CASES
less "$(value four flops)" "$(value eight flops)" 0.51
less "$(value four flops)" "$(value again_f16 flops)" 0.8
less "$(value four flops)" "$(value long flops)" 0.51
less "$(value two step)" "$(value one_lane step)"
large=(train --model sigma-256 --batch 4)
simulate large_f16 "${large[@]}" --machine 1xA100-PCIe --precision f16
simulate large_f32 "${large[@]}" --machine 1xA100-PCIe --precision f32
simulate large_two "${large[@]}" --machine 2xA100-NVLink --precision f16 --strategy data
simulate large_cores "${large[@]}" --machine 1xA100-PCIe --precision f32 --gpus 0 --steps 1
less "$(value large_f16 step)" "$(value large_f32 step)" 0.6
less "$(value large_two step)" "$(value large_f16 step)" 0.9
less "$(value large_f32 step)" "$(value large_cores step)" 0.1
# Gradients are added at all GPUs, and weights sent by all.
simulate balanced train --model sigma-256 --batch 8 --machine 8xA100-PCIe --precision bf16 --strategy data
python3 - balanced <<'END_OF_PROGRAM' || fail "GPUs do not move as many bytes as others"
import json, sys
gpus = json.load(open(sys.argv[1]))["memories"][1:]
for way in "to", "from":
    moved = [gpu[way] for gpu in gpus]
    print(way, moved)
    assert max(moved) < 1.1 * sum(moved) / len(moved)
END_OF_PROGRAM
# Blocks that are computed again when the backward needs them, and not before, take less of the GPU's memory.
again=(train --model sigma-512 --machine 1xA100-PCIe --precision f16 --batch 2 --lanes 1 --steps 1)
simulate kept_512 "${again[@]}"
simulate again_512 "${again[@]}" --recompute block
less "$(gpu_peak again_512)" "$(gpu_peak kept_512)" 0.9
# Storage: a checkpoint has weights, their average and AdamW's two means; all of it is written, and crosses a link if a GPU has it.
for write in 1 2; do
    sed 's/^}/,"storage": {"read_gbs": 0.5, "write_gbs": '$write'}}/' \
        "$(dirname "$SMALTI_TESTDATA")/../machines/1xA100-PCIe.json" >storage.json
    simulate "stored_$write" "${large[@]}" --machine ./storage.json --precision f16
    less "$(awk -v bytes="$(value "stored_$write" checkpoint_bytes)" "BEGIN { print 1e-9 * bytes / $write }")" \
        "$(value "stored_$write" checkpoint)"
done
[ "$(value stored_1 tasks)" = "$(value large_f16 tasks)" ] || fail "storage changes the steps"
awk -v bytes="$(value stored_1 checkpoint_bytes)" 'BEGIN { exit !(bytes > 16 * 0.60e9 && bytes < 16 * 0.62e9) }' ||
    fail "$(value stored_1 checkpoint_bytes) bytes of a checkpoint"
awk -v one="$(value stored_1 checkpoint)" -v two="$(value stored_2 checkpoint)" -v bytes="$(value stored_1 checkpoint_bytes)" \
    'BEGIN { half = 0.5e-9 * bytes; exit !(one - two > 0.999 * half && one - two < 1.001 * half) }' ||
    fail "checkpoints of $(value stored_1 checkpoint) and $(value stored_2 checkpoint) s"
# Four latents' moments of 32x32, and captions of 300 tokens of 4096 values, all of two bytes.
awk -v reading="$(value stored_1 reading)" 'BEGIN { exit !(reading * 0.5e9 == 4 * 2 * (8 * 32 * 32 + 300 * 4096)) }' ||
    fail "a batch is read in $(value stored_1 reading) s"
# An adapter: no products of the other weights' gradients, a third of the arithmetic, none for the caption's and the conditions', and no
# state of theirs.
simulate adapter "${large[@]}" --machine 1xA100-PCIe --precision f16 --lora-rank 16
awk -v adapter="$(value adapter flops)" -v all="$(value large_f16 flops)" 'BEGIN { exit !(adapter > 0.6 * all && adapter < 0.66 * all) }' ||
    fail "$(value adapter flops) operations for an adapter, $(value large_f16 flops) for all"
less "$(value adapter step)" "$(value large_f16 step)"
# CPUs that may help take its short tasks.
for weights in all adapter; do
    [ $weights = all ] && rank=() || rank=(--lora-rank 16)
    simulate "helped_$weights" "${large[@]}" --machine 1xA100-PCIe --precision f16 --sched dmdas "${rank[@]}"
done
less "$(value helped_adapter step)" "$(value helped_all step)" 0.8
less "$(gpu_peak adapter)" "$(gpu_peak large_f16)" 0.6
less "$(value adapter checkpoint_bytes)" "$(value large_f16 checkpoint_bytes)" 0.02
# Its lanes have more and shorter tasks. All of them are there for the cores at the same time.
simulate adapter_cores "${large[@]}" --machine 1xA100-PCIe --precision f32 --gpus 0 --steps 1 --lora-rank 16
less "$(value adapter_cores makespan)" "$(value large_cores makespan)"
# 610 million weights: forward and backward of 256 tokens and of captions, three times the forward's products.
awk -v flops="$(value large_f16 flops)" 'BEGIN { exit !(flops > 8 * 0.8e12 && flops < 8 * 1.3e12) }' ||
    fail "$(value large_f16 flops) operations of 8 samples"
expect 0 '' "$SMALTI" simulate extract --machine 1xA100-PCIe --items 2
grep -qE '^  items +[0-9.]+ a second$' out || fail "no items a second: $(cat out)"
refuse 2 "--size: expected multiples of 16 for training" "$SMALTI" simulate train --machine 1xA100-PCIe --model tiny --size 72x64
refuse 2 "precision: expected one of f32, bf16, f16, tf32, found w8a8" "$SMALTI" simulate train --machine 1xA100-PCIe --precision w8a8
refuse 2 "CPU workers: expected at most 32, which '32-cores' has, found 33" "$SMALTI" simulate --machine 32-cores --cpus 33
refuse 2 "GPUs: expected at most 2, which '2xA100-NVLink' has, found 3" "$SMALTI" simulate --machine 2xA100-NVLink --gpus 3
refuse 2 "unexpected operand 'dance': expected train or extract" "$SMALTI" simulate dance --machine 1xA100-PCIe
refuse 2 "unexpected operand 'now'" "$SMALTI" simulate train now --machine 1xA100-PCIe
refuse 1 "T4 has no rate for products in bf16" "$SMALTI" simulate train --machine 4xT4 --model tiny --precision bf16

# Features: captions and pictures are together as many operations as each alone; what more items, GPUs, larger pictures and
# cores that decode slowly change.
sed 's/"picture_mps": 37/"picture_mps": 0.5/' "$(dirname "$SMALTI_TESTDATA")/../machines/1xA100-PCIe.json" >slow-pictures.json
while read -r name options; do
    # shellcheck disable=SC2086 # several words
    simulate "$name" extract --precision f16 --caption-tokens 20 $options
    # shellcheck disable=SC2086
    simulate again extract --precision f16 --caption-tokens 20 $options
    cmp "$name" again || fail "$name: other numbers the second time"
    less "$(value "$name" area_bound)" "$(value "$name" makespan)"
done <<'CASES'
captions --machine 1xA100-PCIe --items 40 --img-size 256 --t5
pictures --machine 1xA100-PCIe --items 40 --img-size 256 --vae
features --machine 1xA100-PCIe --items 40 --img-size 256
more_features --machine 1xA100-PCIe --items 700 --img-size 128
shared --machine 2xA100-NVLink --items 40 --img-size 256
large_pictures --machine 1xA100-PCIe --items 40 --img-size 512 --vae
decoded --machine ./slow-pictures.json --items 40 --img-size 256 --vae
reduced --machine ./slow-pictures.json --items 40 --img-size 256 --vae --size 1024x512
CASES
python3 - <<'PYTHON' || fail "features: $(cat captions pictures features)"
import json
flops = {name: json.load(open(name))["flops"] for name in ("captions", "pictures", "features", "large_pictures")}
assert abs(flops["captions"] + flops["pictures"] - flops["features"]) < 1e-9 * flops["features"], flops
# four times the pixels, and attention to four times as many
assert 4 < flops["large_pictures"] / flops["pictures"] < 8, flops
rate = json.load(open("more_features"))
assert rate["items"] == 700 and abs(rate["items_per_second"] * rate["makespan"] / 700 - 1) < 1e-9, rate
# eight cores decode 40 pictures of 65,536 pixels at half a megapixel a second each
for name, pixels in ("decoded", 256 * 256), ("reduced", 1024 * 512):
    least, took = 40 * pixels / 5e5 / 8, json.load(open(name))["makespan"]
    assert least <= took < 1.5 * least, (name, took, least)
PYTHON
less "$(value shared makespan)" "$(value features makespan)"
while IFS='|' read -r status words options; do
    # shellcheck disable=SC2086 # several words
    refuse "$status" "$words" "$SMALTI" simulate extract --machine 1xA100-PCIe $options
done <<'REFUSED'
2|--caption-tokens: expected at most 120, which is what the model reads; found 121|--model alpha-512 --precision f16 --caption-tokens 121
2|resolution bins: expected those of 128, 256, 512, 1024, 2048 or 2880, found 100|--img-size 100 --caption-tokens 20
2|--items|--items 0
REFUSED
while IFS='|' read -r what options; do
    # shellcheck disable=SC2086 # several words
    refuse 2 "${options%% *}: a simulation of $what has no such option" "$SMALTI" simulate --machine 1xA100-PCIe $options
done <<'OTHERS'
images|--batch 2
images|--caption-tokens 20
images|--items 2
images|--lora-rank 2
extraction|--lora-targets to_q extract
training|--images 2 train
training|--prompt a train
training|--t5 train
extraction|--strategy ring extract
extraction|--steps 2 extract
extraction|--recompute block extract
OTHERS

# --predict: a real run's work, simulated: what smalti simulate says of it, beside what was measured, in its log and its page.
predicted() {
    python3 - "$@" <<'PYTHON' || fail "$1: $(cat run err)"
import json, sys
job, key = sys.argv[1:3]
prediction = json.loads(open("run").read().splitlines()[-1])
prediction = prediction.get("summary", prediction)["predicted"]
simulated = json.load(open("alone"))
assert prediction["machine"] == "32-cores" and prediction["measured"] > 0, prediction
assert abs(prediction["seconds"] / simulated[key] - 1) < 1e-6, (prediction, simulated)
for log in sys.argv[3:]:
    lines = [json.loads(line) for line in open(log)]
    assert lines[-1]["predicted"] == prediction, lines[-1]
PYTHON
}
on=(--machine 32-cores --cpus 2 --gpus 0)
run() {
    "$SMALTI" "$@" --cpus 2 --cuda 0 --predict 32-cores --json >run 2>err || fail "$*: $(cat err)"
}
run generate -p 'a red star' -s 64x64 --steps 2 --scheduler heun --images 2 -o images/
simulate alone "${on[@]}" -p 'a red star' --size 64x64 --steps 2 --scheduler heun --images 2
predicted generate makespan
simulate fewer "${on[@]}" -p 'a red star' --size 64x64 --steps 2 --images 2
less "$(value fewer flops)" "$(value alone flops)" 0.95
run extract "$SMALTI_TESTDATA/extract/InternData/data_info.json" --img-size 128 -o extracted
simulate alone extract "${on[@]}" --img-size 128 --items "$(grep -oE '"made":[0-9]+' run | cut -d: -f2)" --caption-tokens \
    "$(python3 -c 'import json; run = json.load(open("run")); print(round(run["tokens"] / run["captions"]))')"
predicted extract makespan extracted/runs/*.jsonl
run train extracted -o trained --steps 3 --batch 2
mapfile -t shape < <(python3 -c '
import json
lines = [line for line in map(json.loads, open("trained/log.jsonl")) if line.get("step", 0) > 1 and "loss" in line]
pixels, tokens = (sum(line[key] for line in lines) / len(lines) for key in ("latent_pixels", "caption_tokens"))
assert len(lines) == 2 and pixels > 200 and tokens > 1, lines
print(*[16 * round(pixels ** 0.5 / 2)] * 2, sep="x")
print(int(tokens + 0.5))')
simulate alone train "${on[@]}" --batch 2 --steps 3 --size "${shape[0]}" --caption-tokens "${shape[1]}"
predicted train step trained/log.jsonl
run train extracted -o adapted --steps 3 --batch 2 --lora-rank 4 --lora-targets all --precision bf16
simulate alone train "${on[@]}" --batch 2 --steps 3 --size "${shape[0]}" --caption-tokens "${shape[1]}" --lora-rank 4 \
    --lora-targets all --precision bf16
predicted train step adapted/log.jsonl
for directory in trained extracted; do
    "$SMALTI" report $directory -o page.html 2>err || fail "$(cat err)"
    grep -qF '"predicted":["32-cores",' page.html || fail "$directory: nothing predicted in its page"
done
expect 0 '' "$SMALTI" train extracted -o trained --steps 6 --batch 2 --cpus 2 --predict 32-cores
grep -qE '^a step: .* predicted on 32-cores, .* measured \([-+][0-9.]+ %\)$' err || fail "no line: $(cat err)"
expect 0 'nothing is predicted: the log has no step behind the first' "$SMALTI" train extracted -o one_step --steps 1 --batch 2 --cpus 2 --predict 32-cores
while IFS='|' read -r words options; do
    # shellcheck disable=SC2086 # several words
    refuse "${words%% *}" "${words#* }" "$SMALTI" $options
    [ ! -e no ] || fail "$options: it began"
done <<'UNPREDICTED'
1 no machine is called 'nowhere'|train extracted -o no --predict nowhere
2 simulations do not know --init|train extracted -o no --init config.json --predict 32-cores
2 simulations do not know --prompts|generate -P prompts.txt -o no/ --predict 32-cores
2 simulations do not know --text-encoder-precision|extract list.txt -o no --text-encoder-precision int8 --predict 32-cores
UNPREDICTED
SMALTI_SIM=$work/nowhere expect 0 '' "$SMALTI" generate -p 'a red star' -s 64x64 --steps 1 -o star.png --predict 32-cores
grep -q 'nothing is predicted: .*nowhere cannot be run' err || fail "a prediction that fails: $(cat err)"
[ -e star.png ] || fail "no image without its prediction"

[ "$(value cores transfer_bound)" = 0 ] || fail "transfers of a machine without GPUs"
for name in one dmda ulysses slow ethernet; do
    less 0 "$(value $name transfer_bound)"
done
less "$(value cores makespan)" "$(value core makespan)"
[ -z "$(value batch step)" ] || fail "a step of several images"

grep -qE '"strategy":"(hybrid:)?(patch|ring|ulysses|tensor|cfg)' auto || fail "auto became: $(cat auto)"

# The H200 of docs/devices.md: seconds of a step as they were measured there, within 15 %.
while read -r size step; do
    simulate measured --machine 1xH200-measured --model sigma-1024 --precision bf16 --steps 2 --size "$size" --tile-tokens 65536
    less "$(value measured step)" "$step" 1.15
    less "$step" "$(value measured step)" 1.15
done <<'MEASURED'
512x512 0.0071
1024x1024 0.0265
2048x2048 0.209
4096x4096 2.495
MEASURED

# A model without weights: faster devices and links take less time, and four GPUs gain where their links do.
sigma=(--model sigma-256 --precision f16 --steps 2 --size 512x512)
simulate single --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024
simulate patch --machine 4xA100-PCIe "${sigma[@]}" --strategy patch --tile-tokens 256
simulate nvlink --machine 4xA100-NVLink "${sigma[@]}" --strategy patch --tile-tokens 256
simulate t4 --machine 4xT4 "${sigma[@]}" --strategy patch --tile-tokens 256
less "$(value nvlink step)" "$(value single step)" 0.7
less "$(value nvlink step)" "$(value patch step)"
less "$(value patch step)" "$(value t4 step)"
# Products of integers take less time than those of f16, and all else takes as long.
simulate single_bf16 --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024 --precision bf16
simulate integers --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024 --precision w8a8-bf16
simulate integers_f32 --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024 --precision w8a8
less "$(value integers step)" "$(value single_bf16 step)" 0.9
less "$(value single_bf16 step)" "$(value integers step)" 2
less "$(value integers step)" "$(value integers_f32 step)"
[ "$(value integers flops)" = "$(value single_bf16 flops)" ] || fail "operations: $(value integers flops), $(value single_bf16 flops)"
refuse 1 'has no rate for products in int8' "$SMALTI" simulate --machine 1xH200-measured "${sigma[@]}" --precision w8a8
# 28 blocks of 28 w² products and attention to 1024 tokens, twice, at 130 TFLOP/s.
less 0.0115 "$(value single step)"
less "$(value single step)" 0.0115 2

# Priorities have an earlier patch pass through a stage before the next one.
for policy in dmda dmdas; do
    simulate "pipeline-$policy" --machine 4xA100-NVLink "${sigma[@]}" --steps 4 --strategy pipeline --tile-tokens 256 --sched $policy
done
less "$(value pipeline-dmdas step)" "$(value pipeline-dmda step)" 0.8

# What is near, and what has to move, over which link: where links are slow it pays.
for policy in dmdas locality; do
    simulate "own-$policy" --machine 4xT4 "${sigma[@]}" --tile-tokens 256 --sched $policy
done
less "$(value own-locality makespan)" "$(value own-dmdas makespan)"

# Over a network that is ten times slower, what crosses it takes ten times longer at least.
ethernet=(--machine ./nodes.json "${sigma[@]}" --strategy ring --tile-tokens 64)
machines=$(dirname "$SMALTI_TESTDATA")/../machines
cp "$machines/2x8xL40-Ethernet.json" nodes.json
simulate near-nodes "${ethernet[@]}"
sed -i 's/"network_gbs": 12.5/"network_gbs": 1.25/' nodes.json
simulate far-nodes "${ethernet[@]}"
less "$(value near-nodes step)" "$(value far-nodes step)" 0.7
less "$(value near-nodes transfer_bound)" "$(value far-nodes transfer_bound)" 0.7

# Copies between different GPUs run at the same time: where each takes a millisecond, eight GPUs wait about as long as two. A worker
# takes no lock of the lists, two for each pair of memories, in which there is nothing.
sed 's/"nvswitch_us": 3,/"nvswitch_us": 1000,/' "$machines/8xA100-NVLink.json" >late.json
for gpus in 2 8; do
    SMALTI_LOCKS=$work/locks-$gpus LD_PRELOAD=$(dirname "$SMALTI")/.libs/libcountlocks.so \
        simulate "late-$gpus" --machine ./late.json --gpus $gpus --steps 2 --size 128x128 --strategy ring --precision f16
done
less "$(value late-8 step)" "$(value late-2 step)" 2
less "$(cat locks-8)" "$(value late-8 tasks)" 1000

# A GPU that does not hold the weights drops them and loads them again.
simulate small --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024 --gpu-memory-limit 900M
less "$(value single step)" "$(value small step)"
peaks=$(grep -oE '"peak":[0-9]+,"limit":[0-9]+' small | tail -n 1 | tr -dc '0-9 :,' | tr ':,' '  ')
read -r peak limit <<<"$peaks"
[ "$peak" -le "$limit" ] || fail "$peak of $limit bytes in use"
# Who found no room is woken when there is some: else this one would wait for ever.
simulate short --machine 8xA100-NVLink --steps 1 --size 1024x1024 --precision f16 --gpu-memory-limit 24M

# What denoising needs of a GPU is said where there is less, and blocking programs need more.
"$SMALTI" simulate --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024 --gpu-memory-limit 900M >out 2>err || fail "$(cat err)"
grep -q '^  does not fit: GPU 0 needs [0-9.]* GiB and has 0.88 GiB; what there is no room for' out || fail "nothing of memory: $(cat out)"
"$SMALTI" simulate --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024 --gpu-memory-limit 5G --blocking >out 2>err || fail "$(cat err)"
grep -q '^  out of memory: GPU 0 needs [0-9.]* GiB and has 5.00 GiB$' out || fail "nothing of memory: $(cat out)"
! "$SMALTI" simulate --machine 1xA100-PCIe "${sigma[@]}" --tile-tokens 1024 | grep -E 'fit|out of' || fail "it fits"

# Where exchanges block, GPUs wait for what comes: the longer the less and the later it comes; without figures of exchanges
# over the machine's own links.
for strategy in ulysses displaced; do
    wide=("${sigma[@]}" --size 1024x1024 --steps 3 --strategy "$strategy" --tile-tokens 1024 --machine 4xA100-PCIe)
    simulate overlapping "${wide[@]}"
    simulate blocking "${wide[@]}" --blocking
    less "$(value overlapping step)" "$(value blocking step)"
done
less "$(grep -oE '"needed":[0-9]+' overlapping | tail -n 1 | cut -d: -f2)" "$(grep -oE '"needed":[0-9]+' blocking | tail -n 1 | cut -d: -f2)"
four=$(dirname "$SMALTI_TESTDATA")/../machines/4xA100-PCIe.json
exchange() {
    sed -E "s/(\"exchange_gbs\": )10(, \"exchange_us\": )50/\1$1\2$2/" "$four" >exchanges.json
    simulate "blocking-$1-$2" --machine ./exchanges.json "${sigma[@]}" --strategy ulysses --tile-tokens 256 --blocking
}
exchange 10 50
exchange 5 50
exchange 10 500
less "$(value blocking-10-50 step)" "$(value blocking-5-50 step)"
less "$(value blocking-10-50 step)" "$(value blocking-10-500 step)"
sed 's/, "exchange_gbs": 10, "exchange_us": 50//' "$four" >exchanges.json
simulate blocking-own --machine ./exchanges.json "${sigma[@]}" --strategy ulysses --tile-tokens 256 --blocking
exchange 10 20 # its share of the host, and a link twice
cmp <(sed 's/"machine":"[^"]*"//' blocking-own) <(sed 's/"machine":"[^"]*"//' blocking-10-20) || fail "exchanges over other links"
refuse 2 '--blocking needs --strategy' "$SMALTI" simulate --machine 4xA100-PCIe --blocking --precision f16
simulate alone --machine 4xA100-PCIe "${sigma[@]}" --gpus 1 --blocking

# Shares by speed go by attention, too, which takes a third of this.
sed '/"T4"/,/}]/s/"attention": {"f32": 4, "f16": 8.6}/"attention": {"f32": 4, "f16": 2}/' \
    "$(dirname "$SMALTI_TESTDATA")/../machines/A100-L40-T4.json" >attention.json
heterogeneous=(--machine ./attention.json "${sigma[@]}" --size 1024x1024 --strategy ring)
simulate by-speed "${heterogeneous[@]}" --shares auto
simulate by-products "${heterogeneous[@]}" --shares 0:1:0.73:0.11
less "$(value by-speed step)" "$(value by-products step)" 0.9

# Several policies, and the table for people.
expect 0 '' "$SMALTI" simulate --machine A100-L40-T4 --steps 1 --sched lws,dmdas --precision f16
[ "$(grep -c '^A100-L40-T4, ' out)" -eq 2 ] || fail "not two simulations: $(cat out)"
grep -q '^  CUDA 2.0 (T4 ' out || fail "no T4: $(cat out)"
refuse 2 'one policy' "$SMALTI" simulate --machine 32-cores --sched lws,dm --trace trace.json
expect 2 "scheduling policy 'fast' is not known" "$SMALTI" simulate --machine 32-cores --sched fast
expect 1 'T4 has no rate for products in bf16' "$SMALTI" simulate --machine 4xT4 --precision bf16

# A trace in simulated time: its last task ends at the makespan.
simulate traced --machine 1xA100-PCIe --steps 2 --precision f16 --trace trace.json
python3 - "$(value traced makespan)" <<'PYTHON'
import json, sys
tasks = [e for e in json.load(open("trace.json"))["traceEvents"] if e.get("cat") == "task"]
span = max(e["ts"] + e["dur"] for e in tasks) - min(e["ts"] for e in tasks)
assert 0.9 * float(sys.argv[1]) < span * 1e-6 <= float(sys.argv[1]) * 1.001, (span, sys.argv[1])
PYTHON

# What tasks took in a real run, and what lay between them, they take in a simulated one: on one worker, whatever the
# policy, all of it together.
"$SMALTI" generate -p 'a red star above a blue ring' --steps 2 --cpus 1 --grain block --trace real.json -q -o x.png 2>err || fail "$(cat err)"
for policy in lws dmda; do
    simulate measured --machine 32-cores --cpus 1 --steps 2 --grain block --measured real.json --sched $policy
    python3 - <<'PYTHON' || fail "measured: $(cat measured)"
import json
tasks = [e for e in json.load(open("real.json"))["traceEvents"] if e.get("cat") == "task"]
simulated = json.load(open("measured"))
took, busy = sum(e["dur"] for e in tasks) * 1e-6, sum(worker["busy"] for worker in simulated["workers"])
span = (max(e["ts"] + e["dur"] for e in tasks) - min(e["ts"] for e in tasks)) * 1e-6
assert simulated["tasks"] == len(tasks) and 0.999 * took < busy < 1.01 * span, (simulated["tasks"], len(tasks), busy, took, span)
PYTHON
done
# The machine that made it, which takes about as long without the traces.
# On a busy machine single tasks take many times as long as others of theirs: one of five runs has to do.
for ((run = 1; ; run++)); do
    expect 0 '' "$SMALTI" generate -p 'a red star above a blue ring' --steps 2 --cpus 1 --grain operation --trace real.json -q -o x.png
    expect 0 '' "$SMALTI" simulate --measured real.json --calibrate machine.json
    simulate calibrated --machine ./machine.json --steps 2 --grain operation
    took=$(python3 -c 'import json; print(sum(e["dur"] for e in json.load(open("real.json"))["traceEvents"] if e.get("cat") == "task") * 1e-6)')
    ! awk -v a="$(value calibrated makespan)" -v b="$took" 'BEGIN { exit !(a < 3 * b && b < 3 * a) }' || break
    [ $run -lt 5 ] || fail "the tasks took $took s, and are simulated in $(value calibrated makespan) s"
done

printf '{"traceEvents":[]}' >none.json
printf '{"traceEvents":[{"cat":"task","name":"x","tid":0,"dur":1,"args":{}}]}' >old.json
for bad in none:'no tasks' old:'an older program wrote it' nowhere:'cannot be opened'; do
    refuse 1 "${bad#*:}" "$SMALTI" simulate --machine 32-cores --measured "${bad%%:*}.json"
done

# A study writes its table into its page.
tree=$(dirname "$SMALTI_TESTDATA")/..
mkdir -p study/docs/studies
cp -r "$tree/scripts" study
printf '%s\n' machine,gpus,strategy,synchronous,pixels,seconds,fitted 1xA100-PCIe,,,,512,0.5, 2xA100-PCIe,,ring,,512,, \
    2xA100-PCIe,,displaced,1,512,1, 8xA100-PCIe,2,ring,,512,0.25,yes >study/docs/studies/published.csv
printf 'before\n<!-- table -->\nold\n<!-- end of the table -->\nafter\n' >study/docs/studies/published.md
printf '%s\n' machine,strategy,pixels,gb 1xA100-PCIe,,512,12 2xA100-PCIe,displaced,512, >study/docs/studies/memory.csv
SMALTI=$SMALTI study/scripts/study published >table 2>err || fail "study: $(cat err)"
while read -r row; do
    grep -qE "$row" table || fail "study: no $row in: $(cat table)"
done <<'ROWS'
^\| .1xA100-PCIe. \| all \|  \| [0-9.]+ / 0\.5 \([-+][0-9]+ %\) \|
^\| .2xA100-PCIe. \| all \| .ring. \| [0-9.]+ / out of memory \|
^\| .2xA100-PCIe. \| all \| .displaced., 1 synchronous \| [0-9.]+ / 1 \(
^\| .8xA100-PCIe. \| 2 \| .ring. \| [0-9.]+ / 0\.25 \(
^Of 2 cells of several GPUs that ran half are within .*; of the 1 to which no link was fitted .* Of 1 cells that ran out of memory 0 do so here, and 0 of
^\| .1xA100-PCIe. \|  \| [0-9.]+ / 12 \|$
^\| .2xA100-PCIe. \| .displaced. \| [0-9.]+ / out of memory \|$
ROWS
cmp <(sed -e '/^<!-- table/r table' -e '/^old$/d' <<<$'before\n<!-- table -->\nold\n<!-- end of the table -->\nafter') \
    study/docs/studies/published.md || fail "study: the page became $(cat study/docs/studies/published.md)"
expect 2 'a study is needed' study/scripts/study other

# A machine of one's own, and files that are none.
sed 's/"count": 1/"count": 3/' "$(dirname "$SMALTI_TESTDATA")/../machines/1xA100-PCIe.json" >mine.json
simulate mine --machine ./mine.json --steps 1 --precision f16
[ "$(grep -o 'CUDA [0-9]' mine | wc -l)" -eq 3 ] || fail "not three GPUs: $(cat mine)"
while IFS='|' read -r change words; do
    sed "$change" mine.json >bad.json
    refuse 1 "$words" "$SMALTI" simulate --machine ./bad.json
done <<'BAD'
s/"cpus"/"CPUs"/|"cpus": expected an object
s/"count": 3/"count": 129/|"count"
s/"count": 8/"count": 49/|49 CPUs; expected 48 at most
s/^}/,"nodes": {"count": 2, "network_gbs": 1, "network_us": 1}}/|3 GPUs on 2; expected as many on each
s/^}/,"nodes": {"count": 1, "network_gbs": 1, "network_us": 1}}/|count
s/^}/,"nodes": {"count": 3, "network_us": 1}}/|network_gbs
s/^}/,"nodes": 3}/|"nodes": expected an object
s/^}/,"storage": []}/|"storage": expected an object
s/^}/,"storage": {"read_gbs": 1}}/|write_gbs
s/^}/,"storage": {"read_gbs": 0, "write_gbs": 1}}/|read_gbs
s/"gbs": 1500/"gbs": -1/|gbs
s/"name": "A100"/"name": "<A100>"/|"name": expected letters
s/"products"/"product"/|"products": expected an object
s/"pcie_us": 10/"pcie_us": "x"/|pcie_us
s/"exchange_us": 50/"exchange_us": -1/|exchange_us
s/, "exchange_us": 50//|exchange_us
s/"exchange_gbs": 10/"exchange_gbs": "10"/|exchange_gbs
BAD
[ -z "$(find . -name 'smalti-sim.*')" ] || fail "left behind: $(ls)"
