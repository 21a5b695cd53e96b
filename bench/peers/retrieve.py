#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`smalti retrieve query` beside faiss's IndexFlatIP: the same items, and queries a second.

Usage: retrieve.py [--smalti PATH] [--items N] [--dim D] [--queries Q] [--top K] [--rounds R] [--cpus N]

Vectors are random, of length 1; queries are items of the index. Searches alternate. Smalti's is timed from the queries'
vectors to the items, as faiss's is. Needs numpy, xxhash and faiss-cpu.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import tempfile
import time

import faiss
import numpy as np
import xxhash


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):])
    parser.add_argument("--smalti", default="smalti")
    parser.add_argument("--items", type=int, default=1000000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--queries", type=int, default=1024)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=os.cpu_count())
    return parser.parse_args()


def digest_of(path):
    state = xxhash.xxh3_64()
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            state.update(block)
    return f"{state.intdigest():016x}"


def write_index(folder, vectors):
    """As docs/retrieve.md says."""
    header = json.dumps({"vectors": {"dtype": "F32", "shape": vectors.shape, "data_offsets": [0, vectors.nbytes]}})
    header += " " * (-len(header) % 8)
    with open(folder + "/vectors.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        vectors.tofile(file)
    with open(folder + "/items.jsonl", "w", encoding="ascii") as file:
        file.writelines(f'{{"index":{i},"key":"{i}"}}\n' for i in range(len(vectors)))
    files = {name: digest_of(f"{folder}/{name}") for name in ("vectors.safetensors", "items.jsonl")}
    text = json.dumps({"format": "smalti index", "version": 1, "kind": "captions", "features": "", "caption": "a",
                       "items": len(vectors), "dim": vectors.shape[1], "model": {}, "files": files})[:-1]
    with open(folder + "/index.json", "w", encoding="ascii") as file:
        file.write(f'{text},\n\t"xxh3":\t"{xxhash.xxh3_64(text.encode()).intdigest():016x}"\n}}\n')


def search_smalti(given, folder, wanted):
    command = [given.smalti, "retrieve", "query", folder, "--json", "--top", str(given.top), "--cpus", str(given.cpus)]
    command += [word for item in wanted for word in ("--like", str(item))]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    *found, summary = map(json.loads, lines)
    rows = np.array([[match["index"] for match in query["matches"]] for query in found])
    scores = np.array([[match["score"] for match in query["matches"]] for query in found])
    return rows, scores, summary["summary"]["seconds"]


def search_faiss(given, index, queries):
    began = time.monotonic()
    scores, rows = index.search(queries, given.top)
    return rows, scores, time.monotonic() - began


def main():
    given = arguments()
    vectors = np.random.default_rng(1).standard_normal((given.items, given.dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted = np.linspace(0, given.items - 1, given.queries).astype(int)
    faiss.omp_set_num_threads(given.cpus)
    index = faiss.IndexFlatIP(given.dim)
    index.add(vectors)
    seconds = {"smalti": [], "faiss": []}
    with tempfile.TemporaryDirectory() as folder:
        write_index(folder, vectors)
        for _ in range(given.rounds):
            rows, scores, spent = search_smalti(given, folder, wanted)
            seconds["smalti"].append(spent)
            other_rows, other_scores, spent = search_faiss(given, index, vectors[wanted])
            seconds["faiss"].append(spent)
    same = sum(set(a) == set(b) for a, b in zip(rows.tolist(), other_rows.tolist()))
    print(f"{same} of {given.queries} queries have the same {given.top} items; "
          f"scores differ by {np.abs(scores - other_scores).max():.1e} at most")
    rates = {name: given.queries / statistics.median(all_) for name, all_ in seconds.items()}
    print(f"queries a second: smalti {rates['smalti']:.1f}, faiss {rates['faiss']:.1f}: "
          f"{rates['smalti'] / rates['faiss']:.2f} times")


if __name__ == "__main__":
    main()
