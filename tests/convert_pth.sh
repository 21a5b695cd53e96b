#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# python -m smalti.convert: checkpoints of PixArt's own code to directories that the library reads, and what it refuses.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
source=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source/python

python=
for name in python3 /usr/bin/python3; do
    if "$name" -c 'import numpy' 2>/dev/null; then
        python=$name
        break
    fi
done
if [ -z "$python" ]; then
    echo "no python3 that imports numpy: skipped"
    exit 77
fi
cd "$work"
"$python" "$source/tests/convert_pth.py" "$work"

# What was converted computes what PixArt's code does, on CPUs and, where there is PoCL, on its device.
forward() {
    "$(dirname "$SMALTI")/tests/forward" "$1" "$SMALTI_TESTDATA/golden/pth/forward.safetensors" "$1"
}
for kind in sigma sigma-ema alpha-f16; do
    forward $kind
    POCL_DEVICES=basic STARPU_OPENCL_ON_CPUS=1 STARPU_NOPENCL=1 STARPU_NCPU=1 STARPU_SCHED=eager STARPU_WORKERS_NOBIND=1 \
        STARPU_HOME=$work forward $kind
done

# The command says what makes a directory of such a file.
for option in --model --transformer; do
    refuse 1 'python3 -m smalti.convert' "$SMALTI" generate -p a "$option" "$SMALTI_TESTDATA/golden/pth/alpha-f16.pth" -o a.png
done
