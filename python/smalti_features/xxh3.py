# SPDX-License-Identifier: Apache-2.0
"""XXH3 of 64 bits, without a seed: by the package xxhash where it is, else by NumPy (some 400 MB/s)."""

import struct

import numpy as np

try:
    from xxhash import xxh3_64_intdigest as xxh3
except ImportError:
    xxh3 = None

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")

_MASK = (1 << 64) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _fold(a, b):
    product = a * b
    return (product ^ product >> 64) & _MASK


def _avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & _MASK
    return h ^ h >> 32


def _avalanche_64(h):
    h = (h ^ h >> 33) * _P64_2 & _MASK
    h = (h ^ h >> 29) * _P64_3 & _MASK
    return h ^ h >> 32


def _mix_16(data, at, secret_at):
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _to_16(data):
    n = len(data)
    if n > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, n - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        return _avalanche(n + int.from_bytes(low.to_bytes(8, "little"), "big") + high + _fold(low, high) & _MASK)
    if n >= 4:
        first, last = struct.unpack("<I", data[:4])[0], struct.unpack("<I", data[-4:])[0]
        h = (last + (first << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        h ^= (h << 49 | h >> 15) & _MASK ^ (h << 24 | h >> 40) & _MASK
        h = h * 0x9FB21C651E98DF25 & _MASK
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & _MASK
        return h ^ h >> 28
    secret = struct.unpack("<II", _SECRET[:8])
    if n == 0:
        return _avalanche_64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))
    h = data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8
    return _avalanche_64(h ^ secret[0] ^ secret[1])


def _to_128(data):
    n = len(data)
    h = n * _P64_1
    for i in range((n - 1) // 32, -1, -1):
        h += _mix_16(data, 16 * i, 32 * i) + _mix_16(data, n - 16 * (i + 1), 32 * i + 16)
    return _avalanche(h & _MASK)


def _to_240(data):
    n = len(data)
    h = n * _P64_1 + sum(_mix_16(data, 16 * i, 16 * i) for i in range(8))
    h = _avalanche(h & _MASK) + sum(_mix_16(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, n // 16))
    return _avalanche(h + _mix_16(data, n - 16, 136 - 17) & _MASK)


BATCH = 128  # blocks at a time, so that NumPy's temporaries stay in the cache
_LANES = np.array([1, 0, 3, 2, 5, 4, 7, 6])
_KEYS = np.stack([np.frombuffer(_SECRET, "<u8", 8, 8 * i) for i in range(16)])
_LOW = np.uint64(0xFFFFFFFF)


def _sums(stripes, keys):
    """What stripes [..., n, 8] add to the eight accumulators."""
    keyed = stripes ^ keys
    products = (keyed & _LOW) * (keyed >> np.uint64(32))
    return stripes.sum(axis=-2)[..., _LANES] + products.sum(axis=-2)


def _long(data):
    n = len(data)
    blocks = (n - 1) // 1024
    with np.errstate(over="ignore"):
        accumulators = np.array([_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1], np.uint64)
        last = np.frombuffer(_SECRET, "<u8", 8, 128)
        prime, shift = np.uint64(_P32_1), np.uint64(47)
        for begin in range(0, blocks, BATCH):
            count = min(BATCH, blocks - begin)
            words = np.frombuffer(data, "<u8", count * 128, begin * 1024).reshape(count, 16, 8)
            for block in _sums(words, _KEYS):
                accumulators += block
                accumulators ^= accumulators >> shift
                accumulators ^= last
                accumulators *= prime
        stripes = (n - 1 - blocks * 1024) // 64
        if stripes:
            words = np.frombuffer(data, "<u8", stripes * 8, blocks * 1024).reshape(stripes, 8)
            accumulators += _sums(words, _KEYS[:stripes])
        words = np.frombuffer(bytes(data[-64:]), "<u8").reshape(1, 8)
        accumulators += _sums(words, np.frombuffer(_SECRET, "<u8", 8, 192 - 64 - 7).reshape(1, 8))
    a = [int(value) for value in accumulators]
    h = n * _P64_1 + sum(_fold(a[2 * i] ^ _u64(_SECRET, 11 + 16 * i), a[2 * i + 1] ^ _u64(_SECRET, 19 + 16 * i))
                         for i in range(4))
    return _avalanche(h & _MASK)


def by_numpy(data):
    n = len(data)
    return (_to_16 if n <= 16 else _to_128 if n <= 128 else _to_240 if n <= 240 else _long)(data)


if xxh3 is None:
    xxh3 = by_numpy
