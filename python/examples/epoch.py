#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads an epoch of features as a training would, and says how fast that was.

Usage: epoch.py [--batch N] [--workers N] [--seed N] [--epoch N] DIR
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch
from smalti_features import BinBatches, PixArtFeatures

parser = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1])
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--epoch", type=int, default=0)
parser.add_argument("folder")
given = parser.parse_args()

dataset = PixArtFeatures(given.folder)
batches = BinBatches(dataset, given.batch, given.seed, given.epoch)
loader = torch.utils.data.DataLoader(dataset, batch_sampler=batches, num_workers=given.workers)

items, tokens, began = 0, 0, time.monotonic()
for latents, text, mask, info in loader:
    # A training would call the model here, with latents · scaling_factor and noise.
    items += len(latents)
    tokens += int(mask.sum())
seconds = time.monotonic() - began
print(f"{items} items of {len(dataset)}, {tokens} tokens, {len(batches)} batches in {seconds:.2f} s: "
      f"{items / max(seconds, 1e-9):.0f} items per second")
