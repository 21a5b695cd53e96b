#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How time and memory of the VAE grow with the picture.

Usage: smalti-bench stages --vae 256x256,512x512,... -o decode.jsonl
       vae_growth.py decode.jsonl VAE/config.json PLOT.svg

Prints a table of what `smalti-bench stages` measured beside the arithmetic: convolutions grow with the pixels,
attention with their square. Draws time and peak memory over pixels, both axes logarithmic; the lines are the
arithmetic at the rate of the largest picture, and memory in proportion to pixels.
"""

import json
import math
import re
import sys

WIDTH, HEIGHT, MARGIN = 720, 420, 70


def measurements(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            size = re.fullmatch(r"decode (\d+)x(\d+)", row.get("name", ""))
            if size:
                yield int(size[1]) * int(size[2]), size[0][7:], row["seconds"], row["peak_bytes"]


def decoder_flops(config, pixels):
    """(convolutions, attention), as in the specification's 5.6, for any channels."""
    channels, layers = config["block_out_channels"], config["layers_per_block"] + 1
    factor = 2 ** (len(channels) - 1)
    positions = pixels / factor**2
    deepest = channels[-1]
    convolutions = positions * 18 * deepest * (config["latent_channels"] + 4 * deepest)
    convolutions += positions * 8 * deepest**2
    attention = 4 * positions**2 * deepest
    before = deepest
    for block, out in enumerate(reversed(channels)):
        for layer in range(layers):
            inner = before if layer == 0 else out
            convolutions += positions * (18 * out * (inner + out) + (2 * inner * out if inner != out else 0))
        if block < len(channels) - 1:
            positions *= 4
            convolutions += positions * 18 * out * out
        before = out
    return convolutions + positions * 18 * before * 3, attention


def table(rows, config):
    print("| picture | seconds | µs per pixel | TFLOP: convolutions | attention | GFLOP/s | peak MiB | bytes per pixel |")
    print("|---|---|---|---|---|---|---|---|")
    for pixels, name, seconds, peak in rows:
        convolutions, attention = decoder_flops(config, pixels)
        print(f"| {name} | {seconds:.3g} | {1e6 * seconds / pixels:.3f} | {convolutions / 1e12:.3g} "
              f"| {attention / 1e12:.3g} | {(convolutions + attention) / seconds / 1e9:.0f} | {peak / 2**20:.0f} "
              f"| {peak / pixels:.0f} |")


class Axis:
    """A logarithmic axis from a power of ten to another."""

    def __init__(self, values, begin, end):
        self.least, self.most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.begin, self.end = begin, end

    def at(self, value):
        share = (math.log10(value) - self.least) / (self.most - self.least)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        return [10.0**power for power in range(self.least, self.most + 1)]


def plot(rows, config, path):
    x = Axis([row[0] for row in rows], MARGIN, WIDTH - MARGIN)
    seconds = Axis([row[2] for row in rows], HEIGHT - MARGIN, MARGIN)
    memory = Axis([row[3] for row in rows], HEIGHT - MARGIN, MARGIN)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             f'font-size="13"><rect width="100%" height="100%" fill="white"/>']

    def text(left, top, words, anchor="middle", colour="black"):
        parts.append(f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>')

    def line(points, colour, dashes=""):
        joined = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-dasharray="{dashes}"/>')

    for pixels, name, _, _ in rows:
        line([(x.at(pixels), MARGIN), (x.at(pixels), HEIGHT - MARGIN)], "#ddd")
        text(x.at(pixels), HEIGHT - MARGIN + 18, name)
    for tick in seconds.ticks():
        text(MARGIN - 8, seconds.at(tick) + 4, f"{tick:g} s", "end", "#0044bb")
    for tick in memory.ticks():
        text(WIDTH - MARGIN + 8, memory.at(tick) + 4, f"{tick / 1e9:g} GB", "start", "#bb4400")
    rate = rows[-1][2] / sum(decoder_flops(config, rows[-1][0]))
    line([(x.at(row[0]), seconds.at(rate * sum(decoder_flops(config, row[0])))) for row in rows], "#0044bb", "4 4")
    per_pixel = rows[-1][3] / rows[-1][0]
    line([(x.at(row[0]), memory.at(max(per_pixel * row[0], 10**memory.least))) for row in rows], "#bb4400", "4 4")
    for axis, index, colour in ((seconds, 2, "#0044bb"), (memory, 3, "#bb4400")):
        line([(x.at(row[0]), axis.at(row[index])) for row in rows], colour)
        for row in rows:
            parts.append(f'<circle cx="{x.at(row[0]):.1f}" cy="{axis.at(row[index]):.1f}" r="4" fill="{colour}"/>')
    text(WIDTH / 2, 30, "decoding: time (blue, left) and peak memory (red, right)")
    text(WIDTH / 2, 50, "dashed: the arithmetic at the largest picture's rate; memory in proportion to pixels")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n</svg>\n")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    rows = sorted(measurements(sys.argv[1]))
    if not rows:
        sys.exit(f"{sys.argv[1]}: holds no decoding; make it by smalti-bench stages --vae ... -o FILE")
    with open(sys.argv[2], encoding="utf-8") as file:
        config = json.load(file)
    table(rows, config)
    plot(rows, config, sys.argv[3])


main()
