#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The golden outputs, and the products of raw weights, again on the instruction sets that this machine has
# but does not choose, by the same tolerances: SMALTI_MAX_ISA limits our kernels and oneDNN alike.
set -euo pipefail

programs=$(dirname "$SMALTI")/tests
status=0
for isa in avx512_bf16 avx512 avx2 generic; do
    for subject in golden synthetic generate matmul_raw; do
        log=$(SMALTI_MAX_ISA=$isa "$programs/test_$subject" 2>&1) || {
            echo "FAILED: test_$subject, SMALTI_MAX_ISA=$isa"
            echo "$log"
            status=1
        }
    done
done

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
