#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What CUDA's compiler makes of the kernels that take eight values a thread: 16 bytes at each access to memory, and no
# division in 64 bits.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
source=$(dirname "$0")/..

[ -n "${NVCC:-}" ] || {
    echo "SKIPPED: there is no nvcc"
    exit 77
}
"$NVCC" -x cu -ptx -arch=compute_80 -I"$source/src" -I"$source" -o "$work/program.ptx" "$source/src/kernels/device/program.cl"

# Lines "KERNEL WIDE NARROW DIVISIONS": how many of each it has.
awk '
/^\.visible \.entry / { split($3, words, "("); kernel = words[1]; wide = narrow = divisions = 0 }
/(ld|st)\.global[.a-z]*\.v4\./ { wide++ }
/(ld|st)\.global/ && !/\.v4\./ { narrow++ }
/(div|rem)\.[su]64/ { divisions++ }
/^}/ { if (kernel) print kernel, wide, narrow, divisions; kernel = "" }' "$work/program.ptx" >"$work/kernels"

checked=0
while read -r kernel wide narrow divisions; do
    case $kernel in
    attend_*) continue ;;
    band_moments_fours) narrow=0 ;;             # a group's origin and its sums
    soften_* | divide_values_* | spread_bias_*) narrow=0 ;; # a row's sum, columns of values, and biases
    *_f32 | *_f16 | *_bf16 | *_eights | copy_patches) ;;
    *) continue ;;
    esac
    ((wide && !narrow && !divisions)) ||
        fail "$kernel: $wide accesses of 16 bytes, $narrow others, $divisions divisions in 64 bits"
    checked=$((checked + 1))
done <"$work/kernels"
[ $checked -ge 27 ] || fail "$checked kernels, not all: $(cat "$work/kernels")"
