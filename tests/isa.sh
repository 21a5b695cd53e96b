#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The golden outputs, and the products of raw weights, again on the instruction sets that this machine has
# but does not choose, by the same tolerances: SMALTI_MAX_ISA limits our kernels and oneDNN alike. And once as on a
# machine of 16 cores, where OpenMP would give oneDNN as many threads.
set -euo pipefail

programs=$(dirname "$SMALTI")/tests
status=0

# with SETTING SUBJECT...: these tests pass with a variable set.
with() {
    local setting=$1 subject log
    for subject in "${@:2}"; do
        log=$(env "$setting" "$programs/test_$subject" 2>&1) || {
            echo "FAILED: test_$subject, $setting"
            echo "$log"
            status=1
        }
    done
}

with OMP_NUM_THREADS=16 golden synthetic
own=$("$SMALTI" topology --json | sed -n 's/^\t"isa":\t"\([a-z0-9_]*\)",$/\1/p')
lower=" amx avx512_bf16 avx512 avx2 generic"
[[ $lower == *" $own"* ]] || { echo "FAILED: topology knows no '$own'" && exit 1; }
lower=${lower#*" $own"}
for isa in $lower; do with "SMALTI_MAX_ISA=$isa" golden synthetic generate matmul_raw matmul_rows8; done

# oneDNN's own variables change nothing.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
encode() { "$SMALTI" encode "$SMALTI_TESTDATA/extract/InternImgs/wide.png" -q -o "$1"; }
encode "$work/a.safetensors"
DNNL_MAX_CPU_ISA=SSE41 DNNL_DEFAULT_FPMATH_MODE=ANY encode "$work/b.safetensors"
cmp "$work/a.safetensors" "$work/b.safetensors" || {
    echo "FAILED: DNNL_MAX_CPU_ISA changes results"
    status=1
}
exit $status
