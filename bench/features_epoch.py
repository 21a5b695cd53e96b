#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An epoch of features out of shards beside one out of the reference's files, in turns.

Usage: features_epoch.py [--rounds N] [--items N] [--padding noise|repeat] DIR [FILES]

DIR is a folder of features (`smalti extract`). FILES gets what the reference's tool writes of the same items: per item
a compressed .npz of the text, padded to 300 tokens, and an .npy of the picture (left there; a temporary folder if none
is named). The reference keeps what T5 gives for padding, which is as hard to compress as the rest: noise; --padding
repeat has the last token again instead, of which DEFLATE leaves nothing. Both are read in the same random order by one process, item by item, as a Dataset gives them: the reference's
way as its own loader does (np.load, a sampled latent, text, mask). Prints items per second of each, the ratio, and the
bytes on the disk. The files are in the page cache for both.
"""

import argparse
import pathlib
import random
import statistics
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch
from smalti_features import Features, PixArtFeatures, as_float32

TOKENS = 300


def write_files(features, indices, caption, padding, folder):
    random_values = np.random.default_rng(1)
    for index in indices:
        row = features[index]
        values, width = as_float32(row.texts[caption].values).astype(np.float16), row.texts[caption].values.shape[1]
        padded = np.zeros((1, TOKENS, width), np.float16)
        padded[0, :len(values)] = values
        padded[0, len(values):] = values[-1]
        if padding == "noise":
            padded[0, len(values):] = random_values.permuted(np.resize(values, (TOKENS - len(values), width)), axis=1)
        mask = np.zeros((1, TOKENS), np.int16)
        mask[0, :len(values)] = 1
        np.savez_compressed(folder / f"{index}.npz", caption_feature=padded, attention_mask=mask)
        np.save(folder / f"{index}.npy", as_float32(row.picture.values))


class Files(torch.utils.data.Dataset):
    """As the reference reads its files."""

    def __init__(self, folder, indices):
        self.folder, self.indices = folder, indices

    def __getitem__(self, number):
        index = self.indices[number]
        mean, std = np.split(np.load(self.folder / f"{index}.npy"), 2)
        mean, std = torch.from_numpy(mean), torch.from_numpy(std)
        latents = mean + std * torch.randn_like(mean)
        text = np.load(self.folder / f"{index}.npz")
        return latents, torch.from_numpy(text["caption_feature"]), torch.from_numpy(text["attention_mask"])[None], {}


def epoch(dataset, order):
    began = time.monotonic()
    total = 0
    for number in order:
        latents, text, mask, _ = dataset[number]
        total += latents.shape[0] + text.shape[1] + mask.shape[2]
    return len(order) / (time.monotonic() - began)


def size(paths):
    return sum(path.stat().st_size for path in paths)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--items", type=int, default=256)
    parser.add_argument("--padding", choices=("noise", "repeat"), default="noise")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="?")
    given = parser.parse_args()
    temporary = tempfile.TemporaryDirectory()
    files = given.files or pathlib.Path(temporary.name)
    files.mkdir(exist_ok=True)

    shards = PixArtFeatures(given.folder, first=1, max_tokens=TOKENS)
    shards.captions = shards.captions[:1]
    indices = shards.indices[:given.items]
    write_files(Features(given.folder), indices, shards.captions[0], given.padding, files)
    reference = Files(files, indices)

    order = list(range(len(indices)))
    ratios, rates = [], []
    for _ in range(given.rounds + 1):
        random.shuffle(order)
        rates.append((epoch(shards, order), epoch(reference, order)))
        ratios.append(rates[-1][0] / rates[-1][1])
    rates, ratios = rates[1:], ratios[1:]  # the first one fills the page cache
    ours, theirs = (statistics.median(column) for column in zip(*rates))
    print(f"shards {ours:.1f} items/s, files {theirs:.1f} items/s: {statistics.median(ratios):.2f} times "
          f"({min(ratios):.2f} to {max(ratios):.2f})")
    whole = size(given.folder.glob("shard-*.h5")) * len(indices) / len(Features(given.folder))
    print(f"shards {whole / len(indices):.0f} bytes/item, files {size(files.iterdir()) / len(indices):.0f} bytes/item")


if __name__ == "__main__":
    main()
