#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An image of the reference, spread by an exact strategy over PoCL's devices or, in a build for MPI, over ranks: within
# the tolerances that the reference's outputs state. SMALTI_TEST_FULL=1: every strategy on 1, 2, 3, 4 and 7 places.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
# shellcheck source=device_images.sh
. "$(dirname "$0")/device_images.sh"
# shellcheck source=ranks.sh
. "$(dirname "$0")/ranks.sh"
golden=$SMALTI_TESTDATA/golden/generate
case=10 # 39 patches in 3 rows, with guidance
grep -F "\"id\": \"$case\"" "$golden/cases.jsonl" >"$work/case.jsonl"

if sanitized; then
    echo 'skipped under sanitizers, which make devices slow: test_strategies does the same'
    exit 77
fi
if for_mpi; then
    use_mpi 600
    # spread PLACES OPTION...
    spread() { "${mpirun[@]}" -n "$1" "$SMALTI" generate --cpus 1 "${@:2}"; }
    sample='7 hybrid:tensor2.ring2'
    counts='2 3 4 7'
else
    use_pocl 'golden images of strategies' 7
    spread() { "$SMALTI" generate --cpus 1 --opencl "$1" "${@:2}"; }
    sample='4 hybrid:cfg2.tensor2'
    counts='1 2 3 4 7'
fi

# is_golden: what was made.
is_golden() {
    PYTHONPATH=$tests python3 - "$golden/$case" "$work/made/$case" <<'END_OF_PROGRAM'
import sys
from outputs import pixels, tensors
expected, found = (tensors(f"{path}.safetensors")["latents"] for path in sys.argv[1:])
off = max(abs(a - b) for a, b in zip(expected, found, strict=True)) / max(map(abs, expected))
expected, found = (pixels(f"{path}.png")[2] for path in sys.argv[1:])
apart = [abs(a - b) for a, b in zip(expected, found, strict=True)]
share = sum(d > 0 for d in apart) / len(apart)
print(f"latents {off:.1e} of the largest, {100 * share:.3f} % of values off, the worst by {max(apart)}")
sys.exit(not (off <= 5e-4 and share <= 0.01 and max(apart) <= 2))
END_OF_PROGRAM
}

# try PLACES STRATEGY
try() {
    rm -rf "$work/made"
    expect 0 '' spread "$1" --transformer "$SMALTI_TESTDATA/golden/transformer" -P "$work/case.jsonl" --save-latents --strategy "$2" -q -o "$work/made/"
    echo "$2 on $1: $(is_golden)" || fail "$2 on $1: not the reference's image"
}

if [ -z "${SMALTI_TEST_FULL:-}" ]; then
    # shellcheck disable=SC2086 # two words
    try $sample
    exit
fi
for count in $counts; do
    for strategy in patch ring ulysses tensor cfg2 hybrid:cfg2.{patch2,ulysses2.ring2,tensor3} hybrid:tensor2.ring2; do
        try "$count" "$strategy"
    done
done
