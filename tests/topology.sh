#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti topology`: both outputs, the options, what it says when it cannot.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
export STARPU_HOME=$work # its measurements of the bus stay in here

expect 0 '' "$SMALTI" topology
[ ! -s "$work/err" ] || fail "words on stderr: $(cat "$work/err")"
for words in processor instructions Workers 'Memory nodes' Measured 'f32 FMA' oneDNN StarPU "policy lws"; do
    grep -qF -e "$words" "$work/out" || fail "no '$words' in: $(cat "$work/out")"
done

expect 0 '' "$SMALTI" topology --json --sched=eager --cpus=1
[ "$(grep -c '"kind":.*"CPU"' "$work/out")" -eq 1 ] || fail "not one worker: $(cat "$work/out")"
grep -B2 '"active":.*true' "$work/out" | grep -q '"eager"' || fail "not under eager: $(cat "$work/out")"
grep -qE '"fma":[[:space:]]*[1-9]' "$work/out" || fail "no rate: $(cat "$work/out")"

# Machines that are not here: hwloc reads them from a file, StarPU binds nothing then.
expect 0 '' env -u HWLOC_COMPONENTS HWLOC_XMLFILE="$SMALTI_TESTDATA/topology/gpu.xml" \
    "$SMALTI" topology
for words in '2 packages, 4 cores, 8 hardware threads' 'NUMA 1: 3 GiB, 2 cores' \
    '0000:3b:00.0 Acme Painter 9 (card1 acme0)' 'L2 4 × 2 MiB, L3 2 × 32 MiB' '0 driven by workers'; do
    grep -qF -e "$words" "$work/out" || fail "no '$words' in: $(cat "$work/out")"
done

if [ "$(nproc)" -gt 1 ]; then
    expect 0 "" taskset -c "$(taskset -cp $$ | sed "s/.*: *//; s/[-,].*//")" "$SMALTI" topology
    grep -qF "1 core allowed" "$work/out" || fail "the one core is not told: $(cat "$work/out")"
fi

expect 0 '' env SMALTI_MAX_ISA=avx2 "$SMALTI" topology
grep -qF 'SMALTI_MAX_ISA=avx2' "$work/out" || fail "the limit is not shown"

expect 0 '' "$SMALTI" topology --help
grep -qF -e '--json' "$work/out" || fail "the help does not name --json"
expect 2 'did you mean' "$SMALTI" topology --jsn
expect 2 'operand' "$SMALTI" topology now
expect 2 'policy' "$SMALTI" topology --sched=nosuch
expect 2 'expected' "$SMALTI" topology --cpus=-1
expect 2 'SMALTI_MAX_ISA' env SMALTI_MAX_ISA=mmx "$SMALTI" topology

# OpenCL's drivers are loaded where a device is asked for, and only there. Who asks for none leaves what the others measured of
# the bus as it is. That is so with a StarPU of scripts/starpu, which tells of lost devices, too.
export POCL_DEVICES=basic STARPU_OPENCL_ON_CPUS=1 STARPU_WORKERS_NOBIND=1
# shown DEVICES: the topology with them, and what the linker loaded for it in loaded.PID.
shown() {
    rm -f "$work"/loaded.*
    env LD_DEBUG=files LD_DEBUG_OUTPUT="$work/loaded" "$SMALTI" topology --cpus 1 --opencl "$1" >"$work/out" 2>"$work/err"
}
bus_files() {
    find "$work/.starpu" -path '*/bus/*' -type f -printf '%p %i %T@ %s\n' | sort
}
if ! grep -qsaF starpu_lost_set_callbacks "$SMALTI" "$(dirname "$SMALTI")"/.libs/libsmalti.*; then
    echo "SKIP: OpenCL's drivers (StarPU is another than that of scripts/starpu)"
elif shown 1 && grep -q libpocl "$work"/loaded.*; then
    bus=$(bus_files)
    [ -n "$bus" ] || fail "no measurement of the bus: $(files "$work")"
    shown 0 || fail "without a device: $(cat "$work/err")"
    ! grep -h libpocl "$work"/loaded.* || fail "PoCL's driver without a device"
    shown 1 || fail "with a device again: $(cat "$work/err")"
    [ "$(bus_files)" = "$bus" ] || fail "the bus was measured again: $bus, now $(bus_files)"
else
    echo "SKIP: OpenCL's drivers (no device of PoCL: $(cat "$work/err"))"
fi

if [ -c /dev/full ]; then
    for option in '' --json; do
        # shellcheck disable=SC2016 # expanded by the inner shell
        expect 1 'standard output' sh -c '"$1" topology $2 >/dev/full' sh "$SMALTI" "$option"
    done
fi

(
    trap '' PIPE
    status=0
    "$SMALTI" topology 2>"$work/err" || status=$?
    echo "$status" >"$work/status"
) | true
[ "$(cat "$work/status")" -eq 1 ] || fail "nobody reads: status $(cat "$work/status"), expected 1"
