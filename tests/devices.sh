#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The golden outputs of the stages and of whole images, again on two OpenCL devices (PoCL's) and a CPU, under policies that
# choose differently, by the tolerances for CPUs; and what topologies and traces tell of devices.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
export STARPU_HOME=$work POCL_DEVICES='basic basic' STARPU_OPENCL_ON_CPUS=1 STARPU_WORKERS_NOBIND=1

if ! "$SMALTI" topology --opencl 2 --cpus 1 >"$work/topology" 2>"$work/err"; then
    grep -q 'without OpenCL\|OpenCL devices are asked for' "$work/err" || fail "$(cat "$work/err")"
    echo "golden outputs on devices: skipped: $(cat "$work/err")"
    exit 77
fi
[ "$(grep -c '^  OpenCL [01] ' "$work/topology")" -eq 2 ] || fail "not two devices: $(cat "$work/topology")"

"$SMALTI" generate -p 'a red star' --size 64x64 --steps 2 --opencl 2 --cpus 1 --sched eager --trace "$work/trace" \
    -o "$work/image.png" -q
for device in 0 1; do
    worker=$(grep -o "\"tid\":[0-9]*,\"name\":\"thread_name\",\"args\":{\"name\":\"OpenCL $device " "$work/trace" |
        grep -o '[0-9]*' | head -n 1)
    grep -q "\"ph\":\"X\",\"pid\":1,\"tid\":$worker,.*\"cat\":\"task\"" "$work/trace" || fail "no task on device $device"
done

programs=$(dirname "$SMALTI")/tests
export STARPU_NOPENCL=2 STARPU_NCPU=1
for policy in dmda dmdas lws; do
    export STARPU_SCHED=$policy
    SMALTI_TEST='' "$programs/test_golden" >"$work/log" 2>&1 || fail "test_golden under $policy: $(cat "$work/log")"
    SMALTI_TEST='outputs of the reference' "$programs/test_generate" >"$work/log" 2>&1 ||
        fail "test_generate under $policy: $(cat "$work/log")"
done
