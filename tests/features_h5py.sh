#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What other programs see of a directory of features: h5py, h5dump and the reader in python/.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source/python

python=
for name in python3 /usr/bin/python3; do
    if "$name" -c 'import h5py, numpy' 2>/dev/null; then
        python=$name
        break
    fi
done
if [ -z "$python" ]; then
    echo "no python3 that imports h5py: skipped"
    exit 77
fi

for kind in "f32 plain" "f16 plain" "f16 compressed" "bf16 plain" "bf16 compressed"; do
    directory="$scratch/${kind// /-}"
    # shellcheck disable=SC2086
    tests/make_features "$directory" $kind 103 10
    echo "$kind"
    "$python" "$source/tests/features_h5py.py" "$directory"
    "$python" "$source/tests/features_python.py" "$directory"
    ! command -v h5dump >/dev/null || for file in "$directory"/*.h5; do
        h5dump "$file" >"$scratch/dump"
        grep -q 'DATASET "xxh3"' "$scratch/dump"
    done
done
