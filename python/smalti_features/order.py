# SPDX-License-Identifier: Apache-2.0
"""In which order rows are read: the same as libsmalti's for the same seed, epoch, buffer and part."""

MASK = (1 << 64) - 1


def _mix(value):
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


class _Random:
    """SplitMix64."""

    def __init__(self, seed, epoch, stream):
        self.state = _mix(_mix(_mix(seed & MASK) + epoch & MASK) + stream & MASK)

    def below(self, n):
        self.state = self.state + 0x9E3779B97F4A7C15 & MASK
        return _mix(self.state) * n >> 64


def shard_order(shards, shuffled=False, seed=0, epoch=0, part=0, parts=1):
    """The shards of one part, in turn. All parts shuffle alike; place i is for part i mod `parts`."""
    order = list(range(shards))
    if shuffled:
        random = _Random(seed, epoch, 0)
        for i in range(shards - 1, 0, -1):
            j = random.below(i + 1)
            order[i], order[j] = order[j], order[i]
    return order[part::parts]


def row_order(rows, shuffled=False, seed=0, epoch=0, buffer=1024, part=0, parts=1):
    """Yields (shard, row) for shards with these numbers of rows: drawn at random out of a buffer of the next
    ones, whose place the last of them takes."""
    shards = shard_order(len(rows), shuffled, seed, epoch, part, parts)
    coming = ((shard, row) for shard in shards for row in range(rows[shard]))
    if not shuffled:
        yield from coming
        return
    random = _Random(seed, epoch, 1 + part)
    held = []
    for place in coming:
        held.append(place)
        if len(held) == buffer:
            yield _take(held, random)
    while held:
        yield _take(held, random)


def _take(held, random):
    chosen = random.below(len(held))
    place, held[chosen] = held[chosen], held[-1]
    held.pop()
    return place
