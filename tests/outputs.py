# SPDX-License-Identifier: Apache-2.0
"""What tests read of the command's files, with Python alone. `outputs.py KEY FILE` prints a text of a PNG file."""

import array
import json
import struct
import sys
import zlib


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tensors(path):
    """The f32 tensors of a safetensors file, by name."""
    data = read(path)
    size = struct.unpack("<Q", data[:8])[0]
    header, data = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: array.array("f", data[slice(*entry["data_offsets"])]) for name, entry in header.items()
            if name != "__metadata__" and entry["dtype"] == "F32"}


def chunks(path):
    data, at = read(path), 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + length]
        at += 12 + length


def text(path, key):
    """The text of a key; empty if there is none."""
    for kind, body in chunks(path):
        if kind in (b"tEXt", b"iTXt") and body.split(b"\0")[0].decode() == key:
            return body.split(b"\0")[-1].decode()
    return ""


def pixels(path):
    """Width, height and bytes of an image of RGB with 8 bits."""
    packed = b""
    for kind, body in chunks(path):
        if kind == b"IHDR":
            width, height, *form = struct.unpack(">IIBBBBB", body)
            assert form == [8, 2, 0, 0, 0], path
        packed += body if kind == b"IDAT" else b""
    raw, line, image = zlib.decompress(packed), 3 * width, bytearray()
    above = bytearray(line)
    for y in range(height):
        how, row = raw[y * (line + 1)], bytearray(raw[y * (line + 1) + 1:(y + 1) * (line + 1)])
        for x in range(line):
            a, b, c = row[x - 3] if x > 2 else 0, above[x], above[x - 3] if x > 2 else 0
            near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            row[x] = row[x] + (0, a, b, (a + b) // 2, near)[how] & 255
        image, above = image + row, row
    return width, height, bytes(image)


if __name__ == "__main__":
    print(text(sys.argv[2], sys.argv[1]))
