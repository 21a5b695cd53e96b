#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# python/parquet_to_jsonl.py: rows with any Python, files with one that has pyarrow.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONDONTWRITEBYTECODE=1

python=
for name in ${SMALTI_PYTHON:+"$SMALTI_PYTHON"} python3 /usr/bin/python3; do
    if "$name" -c 'import pyarrow' 2>/dev/null; then
        python=$name
        break
    fi
    "$name" -c '' 2>/dev/null && python=${python:-$name}
done
if [ -z "$python" ]; then
    echo "no python3: skipped"
    exit 77
fi
"$python" "$source/tests/parquet_to_jsonl.py" "$scratch"
