# SPDX-License-Identifier: Apache-2.0
"""A folder of features: its shards, and rows in any order."""

import bisect
import operator
import os
import re
from collections import OrderedDict

from .order import row_order
from .shard import Damaged, Shard

OPEN_MAX = 64


def find_shards(folder):
    """{(first, end): name of the file} of what is committed: of the same items, the one made last."""
    if not os.path.exists(os.path.join(folder, "extract.json")):
        raise FileNotFoundError(f"{folder}: no folder of features, for it has no extract.json")
    found = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"shard-([0-9]{12})-([0-9]{12})(?:-r([1-9][0-9]*))?\.h5", name)
        if match:
            first, end, remake = (int(part or 0) for part in match.groups())
            found[first, end] = max(found.get((first, end), (0, "")), (remake, name))
    ranges = sorted(found)
    for before, after in zip(ranges, ranges[1:]):
        if before[1] > after[0]:
            raise Damaged(f"{folder}/{found[after][1]}: has items that another shard has, too; run smalti verify")
    return {extent: found[extent][1] for extent in ranges}


class Features:
    """The committed rows of a folder, as they are when it is opened.

    features[index] is the row of an item, features[-1] the last row; iterating gives all rows, or those of one of `parts`, in order or shuffled
    by seed and epoch (order.py); `skip` of them were read already. With `complete`, rows that lack anything are left
    out. A damaged row raises Damaged, which ends an iteration unless on_damage is called with it instead.
    """

    def __init__(self, folder, shuffled=False, seed=0, epoch=0, buffer=1024, part=0, parts=1, skip=0, complete=False,
                 on_damage=None):
        seed, epoch, buffer, part, parts, skip = map(operator.index, (seed, epoch, buffer, part, parts, skip))
        if not 0 <= part < parts:
            raise ValueError(f"part {part} of {parts} parts")
        self.folder, self.complete, self.on_damage = folder, complete, on_damage
        self.order = {"shuffled": shuffled, "seed": seed, "epoch": epoch, "buffer": buffer, "part": part,
                      "parts": parts}
        self.skip = skip
        shards = find_shards(folder)
        self.ranges, self.names = list(shards), list(shards.values())
        self._open = OrderedDict()

    def __len__(self):
        """Of all rows, whatever is left out."""
        return sum(end - first for first, end in self.ranges)

    def __getstate__(self):
        return {**self.__dict__, "_open": OrderedDict()}  # each process maps its own

    def shard(self, number):
        """Opened if need be; those used last stay so."""
        if number not in self._open:
            path = os.path.join(self.folder, self.names[number])
            shard = Shard(path)
            if (shard.first, shard.first + shard.rows) != self.ranges[number]:
                raise Damaged(f"{path}: not the items that its name says")
            self._open[number] = shard
            if len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)
        self._open.move_to_end(number)
        return self._open[number]

    def __getitem__(self, index):
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(f"{self.folder}: a row is named by its item's number, found {index!r}") from None
        if index < 0:
            index = self._from_end(-index)
        number = bisect.bisect_right(self.ranges, (index, float("inf"))) - 1
        if number < 0 or index >= self.ranges[number][1]:
            raise IndexError(f"{self.folder}: has no row {index}")
        return self.shard(number).row(index)

    def _from_end(self, count):
        """The item of the row that so many rows end with."""
        for first, end in reversed(self.ranges):
            if count <= end - first:
                return end - count
            count -= end - first
        raise IndexError(f"{self.folder}: has {len(self)} rows, less than were counted from its end")

    def _is_wanted(self, place):
        try:
            return not self.complete or self.shard(place[0]).complete[place[1]]
        except Damaged:
            return True  # reading it says so

    def __iter__(self):
        places = row_order([end - first for first, end in self.ranges], **self.order)
        for number, place in enumerate(filter(self._is_wanted, places)):
            if number < self.skip:
                continue
            try:
                row = self.shard(place[0]).row(self.ranges[place[0]][0] + place[1])
            except Damaged as damage:
                if not self.on_damage:
                    raise
                self.on_damage(damage)
                continue
            yield row
