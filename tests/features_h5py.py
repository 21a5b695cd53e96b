# SPDX-License-Identifier: Apache-2.0
"""features_h5py.py DIRECTORY: what tests/make_features has made, by h5py."""

import glob
import sys

import h5py
import numpy as np

ITEMS = 103
folder = sys.argv[1]
shards = [h5py.File(path, "r") for path in sorted(glob.glob(folder + "/shard-*.h5"))]
joined = h5py.File(folder + "/features.h5", "r")


def names(group):
    found = []
    group.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
    return sorted(found)


def check(ok, what):
    if not ok:
        sys.exit(f"{folder}: {what}")


check(len(shards) == 11, "11 shards")
timing = {"began": 1.7e9, "ended": 1.7e9 + 60.25, "text_seconds": 33.5, "picture_seconds": 12.25, "tokens": 12345,
          "pixels": 678910}
check(all(shard.attrs[name] == timing[name] for shard in shards for name in timing), "how long it took")
check(all(names(shard) == names(joined) for shard in shards), "the same arrays")
for name in names(joined):
    parts = [shard[name][()] for shard in shards]
    array = joined[name]
    if name.endswith("start"):
        values = name.replace("start", "values")
        sizes = [len(shard[values]) for shard in shards]
        parts = [part + sum(sizes[:i]) for i, part in enumerate(parts)]
        check(all(shard[name].dtype == np.int64 for shard in shards), name + ": calculates with integers")
    check(array.is_virtual != name.endswith("start"), name + ": virtual but for starts")
    check(array.dtype.kind == parts[0].dtype.kind and len(array) == sum(map(len, parts)), name + ": type, length")
    check(array[()].tobytes() == np.concatenate(parts).astype(array.dtype).tobytes(), name + ": equal")

check(list(joined["items/index"]) == list(range(ITEMS)), "all items")
check(joined["items/key"][3].decode() == "folder/äöü3.png", "keys")
check(joined["items/key"].asstr()[3] == "folder/äöü3.png", "keys as texts")
check([group.attrs["caption"] for group in joined["text"].values()] == [b"a/b", b"prompt"], "captions")
for key, value in {"text_width": 24, "max_tokens": 300, "image_size": 512, "scaling_factor": 0.13025, "first": 0,
                   "end": ITEMS}.items():
    check(joined.attrs[key] == value, key)
for row in range(ITEMS):
    start, count = (int(joined["text/prompt/" + name][row]) for name in ("start", "count"))
    check(count == (0 if row % 5 == 3 else 1 + row * 13 % 12), "tokens")
    check(list(joined["text/prompt/ids"][start:start + count]) == [(row * 31 + i * 7) % 32128 for i in range(count)],
          "token ids")
