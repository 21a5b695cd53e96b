#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a device can reach: products of square matrices and copies in its memory, by PyTorch.

Usage: roofline.py [--device cpu|cuda] [--side N] [--mib N]

Prints, as a table, the best of ten: TFLOP/s of N x N x N products in each precision, and GB/s read and written by a
copy of that many MiB. A stage's share of these is what is left to gain.
"""

import argparse
import time

import torch


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--side", type=int, default=8192)
    parser.add_argument("--mib", type=int, default=4096)
    return parser.parse_args()


def best_seconds(device, run):
    seconds = []
    for _ in range(11):  # the first one is not counted
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def product(given, dtype, tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a = torch.randn(given.side, given.side, device=given.device).to(dtype)
    b, c = a.clone(), torch.empty_like(a)
    return 2 * given.side**3 / best_seconds(given.device, lambda: torch.matmul(a, b, out=c)) / 1e12


def copy(given):
    a = torch.ones(given.mib << 18, device=given.device)
    b = torch.empty_like(a)
    return 2 * 4 * a.numel() / best_seconds(given.device, lambda: b.copy_(a)) / 1e9


def main():
    given = arguments()
    print(f"{torch.cuda.get_device_name() if given.device == 'cuda' else 'CPU'}, {given.side} x {given.side}")
    precisions = {"f32": (torch.float32, False), "bf16": (torch.bfloat16, False)}
    if given.device == "cuda":
        precisions |= {"tf32": (torch.float32, True), "f16": (torch.float16, False)}
    for name, precision in precisions.items():
        print(f"{name:6}{product(given, *precision):10.4g} TFLOP/s")
    print(f"{'copy':6}{copy(given):10.4g} GB/s")


if __name__ == "__main__":
    main()
