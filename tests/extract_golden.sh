#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a data set to the files of the reference's own tool, read by NumPy: the values are the reference's.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "SKIP: no python3 with NumPy"; exit 77; }

data=$SMALTI_TESTDATA/extract
for fit in stretch cover; do
    "$SMALTI" extract "$data/InternData/data_info.json" --img-size 256 --fit $fit --orientation stored --dtype f32 \
        --shard-items 4 --quiet -o features-$fit
    "$SMALTI" export --format pixart --quiet features-$fit -o $fit
done

cat >compare.py <<'PYTHON'
import glob, json, os, struct, sys
import numpy as np

def tensors(path):
    data = open(path, "rb").read()
    length, = struct.unpack("<Q", data[:8])
    kinds = {"F32": "<f4", "I32": "<i4"}
    return {name: np.frombuffer(data[8 + length:][slice(*view["data_offsets"])], kinds[view["dtype"]])
            .reshape(view["shape"]) for name, view in json.loads(data[8:8 + length]).items() if name[0] != "_"}

data = sys.argv[1]
texts, images = tensors(data + "/t5.safetensors"), tensors(data + "/vae_256.safetensors")
items = json.load(open(data + "/InternData/data_info.json"))
for fit in "stretch", "cover":
    for number, item in enumerate(items):
        stem = os.path.splitext("_".join(item["path"].rsplit("/", 1)))[0]
        found = np.load(f"{fit}/img_sdxl_vae_features_256resolution_ms_new/{stem}.npy")
        expected = images[f"{fit}.{number}"]
        assert found.dtype == np.float32 and found.shape == expected.shape, (stem, found.dtype, found.shape)
        assert np.abs(found - expected).max() <= 5e-5 * np.abs(expected).max(), stem
        file = np.load(f"{fit}/caption_features_new/{stem}.npz")
        hidden, mask, expected = file["caption_feature"], file["attention_mask"], texts[f"t5.{number}"]
        count = len(expected)
        assert hidden.dtype == np.float16 and hidden.shape == (1, 300, expected.shape[1]), (stem, hidden.shape)
        assert mask.dtype == np.int16 and mask.tolist() == [[1] * count + [0] * (300 - count)], stem
        assert np.abs(hidden[0, :count] - expected).max() <= 1e-3 * np.abs(expected).max(), stem
    assert len(glob.glob(fit + "/**/*.np?", recursive=True)) == 2 * len(items)
print(len(items), "items equal the reference's")
PYTHON
"$python" compare.py "$data"
