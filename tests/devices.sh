#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An image under policies that choose differently, and golden outputs of the stages, on two OpenCL devices (PoCL's) and a
# CPU, by the tolerances for CPUs; and what topologies and traces tell of devices.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# What a driver keeps is known by its name, which the sanitizer finds only when it walks the stack with care.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}fast_unwind_on_malloc=0
export STARPU_HOME=$work POCL_DEVICES='basic basic' STARPU_OPENCL_ON_CPUS=1 STARPU_WORKERS_NOBIND=1

if ! "$SMALTI" topology --opencl 2 --cpus 1 >"$work/topology" 2>"$work/err"; then
    grep -q 'without OpenCL\|OpenCL devices are asked for' "$work/err" || fail "$(cat "$work/err")"
    echo "golden outputs on devices: skipped: $(cat "$work/err")"
    exit 77
fi
[ "$(grep -c '^  OpenCL [01] ' "$work/topology")" -eq 2 ] || fail "not two devices: $(cat "$work/topology")"

# latents NAME OPTION...: of a small image.
latents() {
    local name=$1
    shift
    "$SMALTI" generate -p 'a red star' --size 96x64 --steps 3 --save-latents -o "$work/$name.png" -q "$@"
}

# near NAME: the latents are those of the CPU, but for rounding.
near() {
    python3 - "$work/cpu.safetensors" "$work/$1.safetensors" <<'END' || fail "$1: other latents than a CPU's"
import array, struct, sys
def values(path):
    data = open(path, "rb").read()
    return array.array("f", data[8 + struct.unpack("<Q", data[:8])[0]:])
expected, found = map(values, sys.argv[1:])
worst = max(abs(a - b) for a, b in zip(expected, found, strict=True))
sys.exit(not worst <= 5e-4 * max(map(abs, expected)))
END
}

# traced DEVICE: tasks ran there.
traced() {
    local worker
    worker=$(grep -o "\"tid\":[0-9]*,\"name\":\"thread_name\",\"args\":{\"name\":\"OpenCL $1 " "$work/trace" |
        grep -o '[0-9]*' | head -n 1)
    grep -q "\"ph\":\"X\",\"pid\":1,\"tid\":$worker,.*\"cat\":\"task\"" "$work/trace" || fail "no task on device $1"
}

programs=$(dirname "$SMALTI")/tests
latents cpu --cpus 1
for policy in eager dmda dmdas lws; do
    latents $policy --opencl 2 --cpus 1 --sched $policy --trace "$work/trace"
    near $policy
    [ $policy != eager ] || { traced 0 && traced 1; }
done
for stage in 'T5, f32' 'DiT, f32' 'VAE decoder, f32' 'VAE encoder, bf16' 'T5, f16' 'DiT, f16' 'VAE decoder, f16'; do
    SMALTI_TEST=$stage STARPU_NOPENCL=2 STARPU_NCPU=1 STARPU_SCHED=lws "$programs/test_golden" >"$work/log" 2>&1 ||
        fail "$stage: $(cat "$work/log")"
done
