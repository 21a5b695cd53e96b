# SPDX-License-Identifier: Apache-2.0
"""One shard, read by the index at its end (docs/features.md) out of a mapping of the file."""

import json
import mmap
import struct
import zlib
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .xxh3 import xxh3

TRAILER = 62
TYPES = {"f32": "<f4", "f16": "<f2", "bf16": "<u2"}
UNITS = {"index": "<u8", "xxh3": "<u8", "start": "<u8", "count": "<u4", "ids": "<i4", "shape": "<u4", "size": "<u4",
         "ratio": "<f8"}


class Damaged(Exception):
    """A checksum is another: what is in the file is not what was written."""


class Text(NamedTuple):
    ids: np.ndarray     # [tokens], with the end mark
    values: np.ndarray  # [tokens, width]: T5's hidden states


class Picture(NamedTuple):
    size: tuple         # (height, width) of the original
    ratio: float        # height / width of its bin
    values: np.ndarray  # [2·channels, height, width]: mean, then standard deviation, unscaled


class Row(NamedTuple):
    index: int
    key: str
    texts: dict         # by caption; without those that the item has no features of
    picture: Picture    # or None


def as_float32(values):
    """Values of any type; bf16 (which NumPy does not know) is u16 with its bits."""
    if values.dtype == np.uint16:
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def caption_path(caption):
    name = caption.replace("%", "%25").replace("/", "%2F")
    return "/text/" + ("%2E" + name[1:] if name.startswith(".") else name)


class Shard:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._read_index()
        self._held = {}  # of compressed arrays: the piece that was inflated last
        self.first, self.rows = self.index["first"], self.index["rows"]
        self.captions, self.dtype = self.index["captions"], self.index["dtype"]
        self.key = self._texts("/items/key")
        self.checksums = self._array("/items/xxh3")
        self._text = {caption: tuple(self._array(caption_path(caption) + name) for name in ("/start", "/count"))
                      for caption in self.captions}
        self.has_pictures = self.index["latent_channels"] > 0
        if self.has_pictures:
            self._start, self.shape, self.size, self.ratio = (
                self._array("/picture/" + name) for name in ("start", "shape", "size", "ratio"))

    def _read_index(self):
        line = bytes(self.bytes[-TRAILER:])
        try:
            rest, text, length = (int(word, base) for word, base in zip(line[15:].split(), (16, 16, 10)))
            end = len(self.bytes) - TRAILER - length
            index = self.bytes[end:-TRAILER]
            if xxh3(index) != text or line != b"smalti shard 1 %016x %016x %012d\n" % (rest, text, length):
                raise ValueError
            self.index = json.loads(index)
        except ValueError:
            raise Damaged(f"{self.path}: its last line or its index is damaged, or it is no shard") from None
        self.arrays = self.index["arrays"]
        if self._hash_rest(end) != rest:
            raise Damaged(f"{self.path}: what is not values is damaged")

    def _hash_rest(self, end):
        spans = []
        for name, array in self.arrays.items():
            if not name.endswith("/values"):
                continue
            for i, (offset, stored) in enumerate(self._pieces(array)):
                used = min(array["chunk"], array["count"] - i * array["chunk"]) * array["bytes"]
                spans.append((offset, offset + (stored if self.index["compress"] else used)))
        rest, at = [], 0
        for begin, stop in sorted(spans) + [(end, end)]:
            rest.append(self.bytes[at:begin])
            at = max(at, stop)
        return xxh3(b"".join(rest))

    @staticmethod
    def _pieces(array):
        return zip(array["pieces"][0::4], array["pieces"][1::4])

    def _array(self, name):
        """An array that is not of values: its checksum has been looked at."""
        array, unit = self.arrays[name], np.dtype(UNITS[name.rsplit("/", 1)[1]])
        columns = array["bytes"] // unit.itemsize
        if not array["count"]:
            return np.zeros((0, columns) if columns > 1 else 0, unit)
        values = np.frombuffer(self.bytes, unit, array["count"] * columns, array["pieces"][0])
        return values.reshape(-1, columns) if columns > 1 else values

    def _texts(self, name):
        array = self.arrays[name]
        begin, size = (array["pieces"] or [0])[0], array["bytes"]
        return [self.bytes[begin + i * size:begin + (i + 1) * size].rstrip(b"\0").decode()
                for i in range(array["count"])]

    def _piece(self, name, number):
        """The bytes of a piece, as they were before they were compressed."""
        array = self.arrays[name]
        offset, stored, mask, checksum = array["pieces"][4 * number:4 * number + 4]
        if not self.index["compress"]:
            return memoryview(self.bytes)[offset:offset + stored]
        if self._held.get(name, (None, None))[0] != number:
            data = self.bytes[offset:offset + stored]
            if xxh3(data) & (1 << 52) - 1 != checksum:
                raise Damaged("a compressed piece is damaged")
            data = np.frombuffer(data if mask else zlib.decompress(data), np.uint8)
            element = np.dtype(TYPES[self.dtype]).itemsize
            self._held[name] = number, memoryview(data.reshape(element, -1).T.tobytes())
        return self._held[name][1]

    def _values(self, name, start, count):
        """Entries start … start + count − 1 as an array of [count, entry]; a view of the file where it can be."""
        array = self.arrays[name]
        if start + count > array["count"]:
            raise Damaged("its values lie outside of the shard's")
        parts, chunk, size = [], array["chunk"], array["bytes"]
        while count > 0:
            at = start % chunk
            now = min(chunk - at, count)
            parts.append(self._piece(name, start // chunk)[at * size:(at + now) * size])
            start, count = start + now, count - now
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        values = np.frombuffer(joined, TYPES[self.dtype])
        return values.reshape(-1, size // values.itemsize)

    def _read_text(self, caption, i, hashed):
        start, count = (int(array[i]) for array in self._text[caption])
        hashed.append(struct.pack("<Q", count))
        if not count:
            return None
        path = caption_path(caption)
        ids = self._array(path + "/ids")[start:start + count]
        values = self._values(path + "/values", start, count)
        hashed += [ids, values]
        return Text(ids, values)

    def _read_picture(self, i, hashed):
        shape, size = self.shape[i].tolist(), self.size[i].tolist()
        hashed.append(struct.pack("<QQdQQ", *size, self.ratio[i], *shape))
        channels = 2 * self.index["latent_channels"]
        count = channels * shape[0] * shape[1]
        if not count:
            return None
        values = self._values("/picture/values", int(self._start[i]), count)
        hashed.append(values)
        return Picture(tuple(size), float(self.ratio[i]), values.reshape(channels, *shape))

    def row(self, index):
        """The row of that item, checked; Damaged if it is."""
        i = index - self.first
        if not 0 <= i < self.rows:
            raise IndexError(f"{self.path}: has no row {index}")
        key = self.key[i].encode()
        hashed = [struct.pack("<QQ", index, len(key)), key]
        try:
            texts = {caption: self._read_text(caption, i, hashed) for caption in self.captions}
            picture = self._read_picture(i, hashed) if self.has_pictures else None
            if xxh3(b"".join(hashed)) != self.checksums[i]:
                raise Damaged("its checksum is another")
        except (Damaged, zlib.error) as cause:
            raise Damaged(f"{self.path}: row {index} ({self.key[i]}): {cause}") from None
        return Row(index, self.key[i], {name: text for name, text in texts.items() if text}, picture)

    @cached_property
    def complete(self):
        """Of each row whether it has the features of every caption, and of the picture."""
        complete = np.ones(self.rows, bool)
        for _, count in self._text.values():
            complete &= count > 0
        if self.has_pictures:
            complete &= (self.shape > 0).all(axis=1)
        return complete

    def failures(self):
        """(index, key, stage, reason) of what items lack."""
        columns = [self._texts("/failures/" + name) for name in ("key", "stage", "reason")]
        return list(zip(self._array("/failures/index").tolist(), *columns))
