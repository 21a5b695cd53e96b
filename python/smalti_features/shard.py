# SPDX-License-Identifier: Apache-2.0
"""One shard, read by the index at its end (docs/features.md) out of a mapping of the file."""

import mmap
import struct
import zlib
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .xxh3 import xxh3

TRAILER = 62
VERSION = 2
TYPES = {0: ("f32", "<f4"), 1: ("f16", "<f2"), 2: ("bf16", "<u2")}
HEAD = struct.Struct("<10qdq8q4q")
CHUNK, COMPRESSED_CHUNK = 1 << 22, 1 << 18  # bytes
# Of an entry: its type and how many of it.
ITEMS = {"/items/index": ("<u8", 1), "/items/key": None, "/items/xxh3": ("<u8", 1)}
PICTURES = {"/picture/start": ("<u8", 1), "/picture/shape": ("<u4", 2), "/picture/size": ("<u4", 2),
            "/picture/ratio": ("<f8", 1)}
FAILURES = {"/failures/index": ("<u8", 1), "/failures/key": None, "/failures/stage": None, "/failures/reason": None}


class Array(NamedTuple):
    count: int
    unit: str           # of NumPy; None: text
    columns: int        # or bytes of a text
    chunk: int          # entries in a piece
    pieces: list        # of (offset, stored bytes, checksum)


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
        self.key = self._texts("/items/key")
        self.checksums = self._array("/items/xxh3")
        self._text = {caption: tuple(self._array(caption_path(caption) + name) for name in ("/start", "/count"))
                      for caption in self.captions}
        self.has_pictures = self.channels > 0
        if self.has_pictures:
            self._start, self.shape, self.size, self.ratio = map(self._array, PICTURES)

    def _read_index(self):
        line = bytes(self.bytes[-TRAILER:])
        if line.startswith(b"smalti shard ") and line[13:15] != b"%d " % VERSION:
            raise ValueError(f"{self.path}: a shard of version {VERSION} was expected, found {line[13:14].decode()}")
        try:
            rest, checksum, length = (int(word, base) for word, base in zip(line[15:].split(), (16, 16, 10)))
            end = len(self.bytes) - TRAILER - length
            index = self.bytes[end:-TRAILER]
            if xxh3(index) != checksum or line != b"smalti shard %d %016x %016x %012d\n" % (VERSION, rest, checksum,
                                                                                         length):
                raise ValueError
        except ValueError:
            raise Damaged(f"{self.path}: its last line or its index is damaged, or it is no shard") from None
        self._parse(index)
        if self._hash_rest(end) != rest:
            raise Damaged(f"{self.path}: what is not values is damaged")

    def _parse(self, index):
        head = HEAD.unpack_from(index)
        self.first, self.rows, failures, dtype, captions, width = head[:6]
        self.max_tokens, self.channels, _, self.compress = head[6:10]
        values, tokens, text_bytes = head[11], head[12:20], head[20:]
        self.dtype, self._unit = TYPES[dtype]
        texts = index[HEAD.size:].split(b"\0", captions + 1)[:captions + 1]
        self.captions = [text.decode() for text in texts[:-1]]
        at = HEAD.size + sum(len(text) + 1 for text in texts)
        pieces = struct.iter_unpack("<2qQ", index[(at + 7) // 8 * 8:])
        bytes_of = dict(zip(("/items/key", "/failures/key", "/failures/stage", "/failures/reason"), text_bytes))
        self.arrays = {}

        def add(name, count, entry):
            unit, columns = entry or (None, bytes_of[name])
            chunk = count
            if name.endswith("/values"):
                size = np.dtype(unit).itemsize * columns
                chunk = min(count, max(1, (COMPRESSED_CHUNK if self.compress else CHUNK) // size))
            number = -(-count // chunk) if count else 0
            self.arrays[name] = Array(count, unit, columns, chunk, [next(pieces) for _ in range(number)])

        for name, entry in ITEMS.items():
            add(name, self.rows, entry)
        if self.channels:
            for name, entry in PICTURES.items():
                add(name, self.rows, entry)
            add("/picture/values", values, (self._unit, 1))
        for name, entry in FAILURES.items():
            add(name, failures, entry)
        for caption, count in zip(self.captions, tokens):
            path = caption_path(caption)
            add(path + "/start", self.rows, ("<u8", 1))
            add(path + "/count", self.rows, ("<u4", 1))
            add(path + "/ids", count, ("<i4", 1))
            add(path + "/values", count, (self._unit, width))

    def _hash_rest(self, end):
        spans = []
        for name, array in self.arrays.items():
            if not name.endswith("/values"):
                continue
            size = np.dtype(array.unit).itemsize * array.columns
            for i, (offset, stored, _) in enumerate(array.pieces):
                used = min(array.chunk, array.count - i * array.chunk) * size
                spans.append((offset, offset + (stored if self.compress else used)))
        rest, at = [], 0
        for begin, stop in sorted(spans) + [(end, end)]:
            rest.append(self.bytes[at:begin])
            at = max(at, stop)
        return xxh3(b"".join(rest))

    def _array(self, name):
        """An array that is not of values: its checksum has been looked at."""
        array = self.arrays[name]
        offset = array.pieces[0][0] if array.count else 0
        values = np.frombuffer(self.bytes, array.unit, array.count * array.columns, offset)
        return values.reshape(-1, array.columns) if array.columns > 1 else values

    def _texts(self, name):
        array = self.arrays[name]
        begin, size = array.pieces[0][0] if array.count else 0, array.columns
        return [self.bytes[begin + i * size:begin + (i + 1) * size].rstrip(b"\0").decode()
                for i in range(array.count)]

    def _piece(self, name, number):
        """The bytes of a piece, as they were before they were compressed."""
        array = self.arrays[name]
        offset, stored, checksum = array.pieces[number]
        if not self.compress:
            return memoryview(self.bytes)[offset:offset + stored]
        if self._held.get(name, (None, None))[0] != number:
            data = self.bytes[offset:offset + stored]
            if xxh3(data) != checksum:
                raise Damaged("a compressed piece is damaged")
            element = np.dtype(array.unit).itemsize
            whole = stored == array.chunk * array.columns * element  # DEFLATE was left out
            data = np.frombuffer(data if whole else zlib.decompress(data), np.uint8)
            self._held[name] = number, memoryview(data.reshape(element, -1).T.tobytes())
        return self._held[name][1]

    def _values(self, name, start, count):
        """Entries start … start + count − 1 as an array of [count, entry]; a view of the file where it can be."""
        array = self.arrays[name]
        if start + count > array.count:
            raise Damaged("its values lie outside of the shard's")
        parts, size = [], np.dtype(array.unit).itemsize * array.columns
        while count > 0:
            at = start % array.chunk
            now = min(array.chunk - at, count)
            parts.append(self._piece(name, start // array.chunk)[at * size:(at + now) * size])
            start, count = start + now, count - now
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        return np.frombuffer(joined, array.unit).reshape(-1, array.columns)

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
        channels = 2 * self.channels
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
