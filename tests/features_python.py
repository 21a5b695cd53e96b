# SPDX-License-Identifier: Apache-2.0
"""features_python.py DIRECTORY: what tests/make_features has made, by the reader in python/."""

import os
import shutil
import sys

import h5py
from smalti_features import Damaged, Features, Shard, xxh3

ITEMS = 103
folder = sys.argv[1]
joined = h5py.File(folder + "/features.h5", "r")


def check(ok, what):
    if not ok:
        sys.exit(f"{folder}: {what}")

features = Features(folder)
check(features.shard(0).max_tokens == joined.attrs["max_tokens"] == 300, "schema")
check(len(features) == ITEMS and [row.index for row in features] == list(range(ITEMS)), "all rows in order")
check(features[-1].index == ITEMS - 1 and features[-ITEMS].index == 0, "rows from the end")
for wrong, kind in ((slice(0, 1), TypeError), ("a.png", TypeError), (0.5, TypeError), (-ITEMS - 1, IndexError), (ITEMS, IndexError)):
    try:
        features[wrong]
        sys.exit(f"{folder}: row {wrong} was taken")
    except kind as cause:
        check(folder in str(cause), f"words about row {wrong}: {cause}")
for row in features:
    check(row.key == joined["items/key"].asstr()[row.index], "key")
    for caption, name in (("prompt", "prompt"), ("a/b", "a%2Fb")):
        start, count = (int(joined[f"text/{name}/{part}"][row.index]) for part in ("start", "count"))
        check((caption in row.texts) == (count > 0), "which texts")
        if count:
            text = row.texts[caption]
            check(text.values.tobytes() == joined[f"text/{name}/values"][start:start + count].tobytes(), "text values")
            check(text.ids.tolist() == joined[f"text/{name}/ids"][start:start + count].tolist(), "token ids")
    height, width = joined["picture/shape"][row.index].tolist()
    check((row.picture is None) == (height == 0), "which pictures")
    if height:
        start = int(joined["picture/start"][row.index])
        check(row.picture.values.shape == (8, height, width), "picture's shape")
        check(row.picture.values.tobytes() == joined["picture/values"][start:start + 8 * height * width].tobytes(),
              "picture's values")
        check(row.picture.size == (100 + row.index, 200 + row.index * 3 % 50), "picture's size")

# The same orders as tests/test_features_reader.c has.
for seed, epoch, buffer, expected in (0, 0, 1024, [4, 64, 11, 92, 100, 85]), (2**64 - 1, 3, 40, [25, 24, 35, 17, 18, 92]):
    order = [row.index for row in Features(folder, shuffled=True, seed=seed, epoch=epoch, buffer=buffer)]
    check(order[:6] == expected and sorted(order) == list(range(ITEMS)), "shuffled")
    rest = Features(folder, shuffled=True, seed=seed, epoch=epoch, buffer=buffer, skip=50)
    check([row.index for row in rest] == order[50:], "skipped")
parts = [[row.index for row in Features(folder, shuffled=True, part=part, parts=3)] for part in range(3)]
check(sorted(sum(parts, [])) == list(range(ITEMS)), "parts")
whole = [row.index for row in features if len(row.texts) == 2 and row.picture]
check([row.index for row in Features(folder, complete=True)] == whole, "complete rows")
failed = [failure for number in range(11) for failure in features.shard(number).failures()]
check([failure[0] for failure in failed] == list(range(4, ITEMS, 11)) and failed[0][2] == "vae", "failures")

# XXH3 by NumPy, as libxxhash has it, of the high bytes of a sequence.
state, sequence = 1, bytearray()
for _ in range(100000):
    state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
    sequence.append(state >> 56)
hashes = {
    0: 0x2d06800538d394c2, 1: 0xc00f9d4f580c0c3a, 3: 0xe92112d1e602af4a, 4: 0x9008de7e100606d1,
    8: 0xcca6ee6f8e080c52, 9: 0x568f9d2e69ad8bd0, 16: 0x600a07a4f5a9911c, 17: 0xdeab0265f35dfc24,
    32: 0xd04581c566616653, 33: 0xe2f96cd271e72881, 64: 0xad0685dabb3ce66b, 65: 0x7d4e3da065c21b2d,
    127: 0x422fa93af255d6f6, 128: 0x410bd3b4d8d84f51, 129: 0x55964eec39625032, 144: 0x827fbbc03ec48dd7,
    240: 0x977b659bdc81fdb1, 241: 0x2cb1ed4a30c8bded, 1024: 0x5ec111a1e5a293ae, 1025: 0x5ea0264528a903fc,
    1088: 0x5caa733531330766, 2048: 0x82651c64d545e737, 5000: 0x215db44dee9150c0, 100000: 0x17728b9ba27f68a8,
}
for length, expected in hashes.items():
    check(xxh3.by_numpy(bytes(sequence[:length])) == expected, f"XXH3 of {length} bytes")

# No flipped byte goes unnoticed, and those that are noticed hide no other row.
with open(features.shard(0).path, "rb") as file:
    good = file.read()
path = os.path.join(os.path.dirname(folder), "flipped.h5")
noticed = 0
for number in range(60):
    bad = bytearray(good)
    bad[number * 7919 % len(good)] ^= 1 << number % 8
    with open(path, "wb") as file:
        file.write(bad)
    try:
        shard = Shard(path)
        for index in range(10):
            shard.row(index)
    except Damaged:
        noticed += 1
check(noticed == 60, f"{noticed} of 60 flipped bytes were noticed")
damaged = folder + "-damaged"
shutil.copytree(folder, damaged)
shutil.copy(path, features.shard(0).path.replace(folder, damaged))
seen = []
rest = [row.index for row in Features(damaged, on_damage=seen.append)]
check(len(rest) + len(seen) == ITEMS and seen and set(range(10, ITEMS)) <= set(rest), "the others are read")
shutil.rmtree(damaged)

try:
    import torch
except ImportError:
    sys.exit()

# The items as PixArt's training takes them.
from smalti_features import BinBatches, PixArtFeatures, as_float32

dataset = PixArtFeatures(folder, first=1, sample=False)
check(dataset.indices == whole and dataset.max_tokens == 300, "items")
types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
for number, index in enumerate(whole):
    latents, text, mask, info = dataset[number]
    row = features[index]
    tokens = len(row.texts["prompt"].ids)
    check(latents.dtype == text.dtype == types[features.shard(0).dtype], "types")
    check(text.shape == (1, 300, 24) and mask.shape == (1, 1, 300) and mask.dtype == torch.int16, "shapes")
    check(torch.equal(latents.float(), torch.from_numpy(as_float32(row.picture.values).copy())), "latents")
    check(int(mask.sum()) == tokens and bool((mask[..., :tokens] == 1).all()), "mask")
    check(all(torch.equal(text[0, i].view(torch.uint8), text[0, tokens - 1].view(torch.uint8))
              for i in range(tokens, 300)), "the last token again")
    check(info["img_hw"].tolist() == list(row.picture.size) and info["aspect_ratio"] == row.picture.ratio, "info")
check(PixArtFeatures(folder)[0][0].shape[0] == 4, "sampled latents")
batches = list(BinBatches(dataset, 2, seed=1))
check(len(batches) == len(BinBatches(dataset, 2)) and all(len(batch) == 2 for batch in batches), "batches")
loader = torch.utils.data.DataLoader(dataset, batch_sampler=BinBatches(dataset, 2), num_workers=2)
check(sum(len(batch[0]) for batch in loader) == 2 * len(batches), "two processes")
