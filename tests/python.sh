#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The package in python/: its wheel, made and unpacked without a network, on the library of this build, beside the command.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
source=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONDONTWRITEBYTECODE=1

# Older setuptools make wheels by the package of that name.
needs='import cffi, numpy, setuptools
int(setuptools.__version__.split(".")[0]) > 70 or __import__("wheel")'
python=
for name in python3 /usr/bin/python3; do
    if "$name" -c "$needs" 2>/dev/null; then
        python=$name
        break
    fi
done
if [ -z "$python" ]; then
    echo "no python3 that imports cffi, numpy, setuptools and wheel: skipped"
    exit 77
fi

cp -r "$source/python" "$work/python"
chmod -R u+w "$work/python"
cd "$work/python"
rm -rf build ./*.egg-info
"$python" -c 'import setuptools.build_meta as backend; backend.build_wheel("..")' >../wheel.log 2>&1 ||
    fail "no wheel: $(cat ../wheel.log)"
cd "$work"
[ "$(find . -maxdepth 1 -name 'smalti-*-py3-none-any.whl' | wc -l)" -eq 1 ] || fail "wheels: $(ls)"
"$python" -m zipfile -e smalti-*.whl site
rm -r python
for file in smalti/py.typed smalti/declarations.h smalti/convert/__main__.py smalti_features/xxh3.py; do
    [ -e "site/$file" ] || fail "the wheel lacks $file: $(files site)"
done

# What the package declares is what the headers do.
"$python" "$source/python/declarations.py" "$source/include/smalti" >declarations.h
cmp declarations.h site/smalti/declarations.h ||
    fail "the headers have changed: python3 python/declarations.py include/smalti >python/smalti/declarations.h"

export PYTHONPATH=$work/site SMALTI_MODEL_DIR=$SMALTI_MODELS/tesserae
SMALTI_LIBRARY=$(dirname "$SMALTI")/.libs/libsmalti.so.0
export SMALTI_LIBRARY
list=$SMALTI_TESTDATA/extract/InternData/data_info.json
expect 0 '' "$python" "$source/python/examples/tour.py" "$list" tour
grep -qxF '(2, 64, 96, 3) uint8' out || fail "images: $(cat out)"
grep -qxF '(1, 4, 8, 12) float32 True' out || fail "latents: $(cat out)"
grep -qF 'EINVAL steps' out || fail "error: $(cat out)"
grep -qxF '14 of 14 items, 0 failed' out || fail "features: $(cat out)"

# The command's files, which have the same values.
expect 0 '' "$SMALTI" generate -p 'a red star above a blue ring on a white background' --size 96x64 --steps 8 --seed 1 -o star.png
expect 0 '' "$SMALTI" generate -p 'a green heart on a black background' --size 96x64 --steps 8 --seed 1 -o heart.png
expect 0 '' "$SMALTI" generate -p 'a red star above a blue ring on a white background' --size 96x64 --steps 8 --seed 1 \
    --image star.png --strength 0.5 --scheduler unipc -o changed.png
ln -s "$SMALTI_TESTDATA/golden/lora" adapters
expect 0 '' "$SMALTI" generate -p 'a red star' --size 64x64 --steps 4 --lora adapters/peft:0.7 --lora adapters/flat/lora.safetensors:-0.5 \
    --text-encoder-precision int8 -o adapted.png
expect 0 '' "$SMALTI" encode star.png -o star.npy
cmp tour/star.npy star.npy
expect 0 '' "$SMALTI" decode star.npy --raw --format ppm -o decoded.ppm
expect 0 '' "$SMALTI" extract "$list" --img-size 256 --dtype f32 -o features
"$python" "$source/tests/python_package.py" "$work"

# Where the wheel brings the library (scripts/wheel), it is found, and what lies beside it: the model and the policies.
mkdir -p site/smalti/installed/{lib/smalti/policies,share/smalti}
cp "$SMALTI_LIBRARY" site/smalti/installed/lib/libsmalti.so.0
cp "$SMALTI_POLICIES/locality.so" site/smalti/installed/lib/smalti/policies
ln -s "$SMALTI_MODELS" site/smalti/installed/share/smalti/models
(
    unset SMALTI_LIBRARY SMALTI_MODEL_DIR SMALTI_POLICIES
    expect 0 '' "$python" -c 'import smalti
with smalti.Session(policy="locality") as session, smalti.Pipeline() as pipeline:
    print(pipeline.generate("a red star", width=32, height=32, num_inference_steps=1).shape)'
)
grep -qxF '(1, 32, 32, 3)' out || fail "the library of the wheel: $(cat out err)"
rm -r site/smalti/installed

# A program that closes nothing ends as one that does; another library, or none, is said.
expect 0 '' "$python" -c 'import smalti
pipeline = smalti.Pipeline()
pipeline.generate("a red star", width=32, height=32, num_inference_steps=1)
vae = pipeline.vae'
[ ! -s err ] || fail "it ends with: $(cat err)"
SMALTI_LIBRARY=nowhere.so expect 1 'SMALTI_LIBRARY' "$python" -c 'import smalti; smalti.Pipeline'
sed -i 's/__version__ = .*/__version__ = "0.999.0"/' site/smalti/version.py
expect 1 'expected version 0.999.0 of Smalti, found' "$python" -c 'from smalti import Pipeline'
