#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An image under policies that choose differently, and golden outputs of stages and images, on two OpenCL devices (PoCL's) and a
# CPU, by the tolerances for CPUs; and what topologies and traces tell of devices.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
use_pocl 'golden outputs on devices'
[ "$(grep -c '^  OpenCL [01] ' "$work/topology")" -eq 2 ] || fail "not two devices: $(cat "$work/topology")"

# What the end of a trace tells of both devices: between nothing and all of the time, bytes to each and from one, memory.
traced_devices() {
    python3 - "$work/trace" <<'END_OF_PROGRAM' || fail "the trace tells of devices: $(tail -n 1 "$work/trace")"
import json, sys
trace = json.load(open(sys.argv[1]))
devices, links = trace["devices"], trace["transfers"]
assert [device["node"] for device in devices] == [1, 2]
for device in devices:
    assert 0 < device["busy"] <= 1 and device["peak_memory"] > 1 << 20
    assert device["peak_memory"] <= device["memory"]
    for way in "to", "from":
        for what in "bytes", "count":
            counted = device[{"bytes": "bytes_", "count": "transfers_"}[what] + way]
            assert counted == sum(link[what] for link in links if link[way] == device["node"])
    if "seconds_to" in device:  # StarPU tells when transfers begin and end
        assert 0 < device["seconds_to"] < device["seconds"] and 0 <= device["seconds_from"] < device["seconds"]
        assert device["exposed"] >= 0 and device["hidden"] >= 0
        assert abs(device["exposed"] + device["hidden"] - device["seconds_to"]) < 1e-9
assert all(device["bytes_to"] > 0 for device in devices) and sum(device["bytes_from"] for device in devices) > 0
END_OF_PROGRAM
}

latents cpu --cpus 1
for policy in eager dmda dmdas lws; do
    latents $policy --opencl 2 --cpus 1 --sched $policy --trace "$work/trace"
    near $policy
    [ $policy != eager ] || { traced 'OpenCL 0' && traced 'OpenCL 1' && traced_devices; }
done

# The log of an extraction, which a report shows, names the devices and has what they did: nothing, if the CPU was quicker.
printf '{"prompt":"a red star"}\n' >"$work/list.jsonl"
"$SMALTI" extract "$work/list.jsonl" --t5 -q --opencl 2 --cpus 1 -o "$work/features"
grep -q '"workers":\["OpenCL 0 .*"OpenCL 1 .*"CPU 0"\]' "$work"/features/runs/* || fail "workers: $(head -n 1 "$work"/features/runs/*)"
grep -q '"devices":\[{"name":"OpenCL 0 .*"bytes_to":[0-9].*{"name":"OpenCL 1 .*"bytes_to":[0-9]' "$work"/features/runs/* ||
    fail "devices: $(cat "$work"/features/runs/*)"

# What devices did is said at the end: a line for each, or in the summary.
"$SMALTI" generate -p a --size 96x64 --steps 1 -o "$work/a.png" --opencl 2 --cpus 1 2>"$work/said"
[ "$(grep -c '^OpenCL [01] .*: busy [0-9]* %.*, .* to it.*, .* from it.*, memory .* of ' "$work/said")" -eq 2 ] ||
    fail "not a line for each device: $(cat "$work/said")"
"$SMALTI" generate -p a --size 96x64 --steps 1 -o "$work/a.png" --opencl 2 --cpus 1 --json 2>/dev/null |
    grep -q '"summary":.*"devices":\[{"name":"OpenCL 0 .*{"name":"OpenCL 1 ' || fail "no devices in the summary"
"$SMALTI_BENCH" stages --dit 32x48 --repeats 1 --json --opencl 1 --cpus 1 --reproducible |
    grep -q '"devices":\[{"name":"OpenCL 0 .*"flops":[1-9].*"peak":[1-9]' || fail "no speed of the device beside that of its products"

# What a server's devices have in use, and what has moved; PoCL has no utilisation.
"$SMALTI" serve --listen 127.0.0.1:0 --opencl 2 --cpus 1 --sched eager >"$work/served" 2>"$work/err" &
server=$!
await_words 'listening on' "$work/served"
url=$(sed -n 's/^listening on //p' "$work/served")
curl -sS "$url/v1/images/generations" -H 'Content-Type: application/json' -H 'Accept: image/png' \
    -d '{"prompt":"a","size":"96x64","num_inference_steps":1}' -o "$work/a.png"
curl -sS "$url/metrics" >"$work/metrics"
kill $server
wait $server || true
for device in 'OpenCL 0' 'OpenCL 1'; do
    for metric in memory_used_bytes memory_bytes received_bytes_total; do
        grep -q "^smalti_device_$metric{device=\"$device [^\"]*\"} [1-9]" "$work/metrics" ||
            fail "no $metric of $device: $(cat "$work/metrics")"
    done
done
! grep -q 'utilisation_ratio{' "$work/metrics" || fail "a utilisation that nobody told"

export STARPU_NOPENCL=2
for policy in lws dmda dmdas; do golden $policy 'T5, f32' 'DiT, f32' 'VAE decoder, f32' 'VAE encoder, f32' images; done
golden dmda 'VAE encoder, bf16' 'T5, f16' 'DiT, f16' 'VAE encoder, f16'
golden eager 'images from images'
for subject in coded_weights adapters; do
    STARPU_NCPU=1 STARPU_SCHED=eager "$programs/test_$subject" >"$work/log" 2>&1 || fail "$subject: $(cat "$work/log")"
done
SMALTI_TEST='three steps' STARPU_NCPU=1 STARPU_SCHED=eager "$programs/test_adapter_training" >"$work/log" 2>&1 ||
    fail "training of adapters: $(cat "$work/log")"
grep -q 'tests  *1  *1  *1 ' "$work/log" || fail "test_adapter_training has no case 'three steps'"

unset STARPU_NOPENCL # it overrides --opencl

# The latents of adapters, merged and of a single prompt.
lora=$SMALTI_TESTDATA/golden/lora
for where in cpu pocl; do
    options=(--size 96x64 --steps 3 --save-latents -q --cpus 1)
    [ $where = cpu ] || options+=(--opencl 2 --sched eager)
    "$SMALTI" generate "${options[@]}" -p 'a red star' --lora "$lora/dora:0.5" -o "$work/merged-$where.png"
    echo "{\"id\": \"single-$where\", \"prompt\": \"a red star\", \"lora\": \"$lora/peft:0.7\"}" |
        "$SMALTI" generate "${options[@]}" -P - -o "$work/"
done
near merged-pocl 5e-4 merged-cpu
near single-pocl 5e-4 single-cpu

# A text encoder whose inputs are rounded, by integers on a device alone and on CPUs.
for where in cpu device; do
    options=()
    [ $where = cpu ] || options=(--opencl 1 --reproducible --trace "$work/trace")
    "$SMALTI" generate -p 'a red star above a blue ring on a white background' --size 64x64 --steps 2 "${options[@]}" \
        --text-encoder-precision w8a8 --save-latents -q -o "$work/$where.png" || fail "text encoder of integers, $where"
done
PYTHONPATH=$(dirname "$0") python3 - "$work" <<'END' || fail "text encoder of integers: the device's latents differ"
import json, sys
import outputs
work = sys.argv[1]
(cpu,), (device,) = (outputs.tensors(f"{work}/{where}.safetensors").values() for where in ("cpu", "device"))
events = json.load(open(f"{work}/trace"))["traceEvents"]
workers = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert all(workers[e["tid"]].startswith("OpenCL") for e in events if e.get("cat") == "task" and e["name"].startswith("text "))
assert max(abs(a - b) for a, b in zip(cpu, device)) < 1e-3 * max(map(abs, cpu))
END
