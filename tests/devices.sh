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
    for way in "to", "from":
        assert device["bytes_" + way] == sum(link["bytes"] for link in links if link[way] == device["node"])
assert all(device["bytes_to"] > 0 for device in devices) and sum(device["bytes_from"] for device in devices) > 0
END_OF_PROGRAM
}

latents cpu --cpus 1
for policy in eager dmda dmdas lws; do
    latents $policy --opencl 2 --cpus 1 --sched $policy --trace "$work/trace"
    near $policy
    [ $policy != eager ] || { traced 'OpenCL 0' && traced 'OpenCL 1' && traced_devices; }
done

# The log of an extraction, which a report shows, names the devices.
printf '{"prompt":"a red star"}\n' >"$work/list.jsonl"
"$SMALTI" extract "$work/list.jsonl" --t5 -q --opencl 2 --cpus 1 -o "$work/features"
grep -q '"workers":\["OpenCL 0 .*"OpenCL 1 .*"CPU 0"\]' "$work"/features/runs/* || fail "workers: $(head -n 1 "$work"/features/runs/*)"

export STARPU_NOPENCL=2
for policy in lws dmda dmdas; do golden $policy 'T5, f32' 'DiT, f32' 'VAE decoder, f32' 'VAE encoder, f32' images; done
golden dmda 'VAE encoder, bf16' 'T5, f16' 'DiT, f16' 'VAE encoder, f16'
