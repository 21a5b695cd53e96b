#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captions to features on disk: `smalti extract --t5` beside the way of PixArt's tool.

Usage: extract.py --model DIR --lengths FILE [--smalti PATH] [--items N] [--peer-items M] [--rounds R]

The peer is PyTorch, one caption at a time padded to 300 tokens, each into a compressed .npz of f16 values; both
compute in f32 and write f16. FILE holds lengths in tokens, one a line; captions of these are made of
words that tokenizers have whole.
Rounds alternate; items a second, bytes a caption and their ratios are printed.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch
from transformers import T5EncoderModel


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):])
    parser.add_argument("--smalti", default="smalti")
    parser.add_argument("--model", required=True)
    parser.add_argument("--lengths", required=True)
    parser.add_argument("--items", type=int, default=256)
    parser.add_argument("--peer-items", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


WORDS = "a red blue green yellow white black brown star circle square ring triangle above below small large".split()


def captions(given):
    """As many words as leave room for the end mark: most of these are one token each."""
    draw = random.Random(1)
    with open(given.lengths, encoding="ascii") as lengths:
        return [" ".join(draw.choices(WORDS, k=int(length) - 1)) for length in lengths][:given.items]


def folder_bytes(folder, ending):
    return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith(ending))


def run_smalti(given, folder):
    command = [given.smalti, "extract", folder + "/list.jsonl", "--t5", "-m", given.model, "-q", "--json",
               "-o", folder + "/features"]
    began = time.monotonic()
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    seconds = time.monotonic() - began
    return report["items"] / seconds, report["tokens"] / seconds, folder_bytes(folder + "/features", ".h5")


def pad(tokens):
    """Any ids: what they are does not matter to the time."""
    ids, mask = torch.zeros((1, 300), dtype=torch.long), torch.zeros((1, 300), dtype=torch.long)
    ids[0, :tokens], ids[0, tokens - 1], mask[0, :tokens] = torch.randint(3, 32000, (tokens,)), 1, 1
    return ids, mask


def run_peer(given, model, texts, folder):
    began = time.monotonic()
    for index, text in enumerate(texts[:given.peer_items]):
        ids, mask = pad(len(text.split()) + 1)
        with torch.no_grad():
            hidden = model(ids, attention_mask=mask)[0]
        np.savez_compressed(f"{folder}/{index}.npz", caption_feature=hidden.numpy().astype(np.float16),
                            attention_mask=mask.numpy().astype(np.int16))
    return given.peer_items / (time.monotonic() - began), folder_bytes(folder, ".npz")


def main():
    given = arguments()
    texts = captions(given)
    model = T5EncoderModel.from_pretrained(given.model + "/text_encoder", torch_dtype=torch.float32).eval()
    rates = []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/list.jsonl", "w", encoding="ascii") as output:
                for text in texts:
                    output.write(json.dumps({"prompt": text}) + "\n")
            items, tokens, size = run_smalti(given, folder)
            peer, peer_size = run_peer(given, model, texts, folder)
        print(f"smalti {items:.3f} items/s, {tokens:.1f} tokens/s; peer {peer:.3f} items/s; ratio {items / peer:.2f}")
        rates.append(items / peer)
    print(f"median ratio {statistics.median(rates):.2f} over {given.rounds} rounds")
    print(f"bytes a caption: smalti {size / len(texts):.0f}, peer {peer_size / given.peer_items:.0f}, ratio "
          f"{size / len(texts) / (peer_size / given.peer_items):.3f}")


if __name__ == "__main__":
    main()
