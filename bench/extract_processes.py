#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extraction by many processes that share a directory, simulated.

Usage: extract_processes.py [OPTION...] PROCESSES...

Prints, for each number of processes, the seconds until the last one ends, items a second, and the efficiency: the time
of one process over n times that of n. A process starts, then takes shards of --shard items until none is left: it
waits for the directory's lock, holds it for --claim and --each for every claim and shard that there is, computes at
--rate items a second while it reads --read bytes of each, writes --write bytes of each, and holds the lock for --commit
and --each for every shard.
All processes together read and write --storage bytes a second, shared evenly; the lock is the first one's that came.
Their rates lie evenly within --spread of --rate.
"""

import argparse
import heapq


class Storage:
    """Bytes under way, which share the bandwidth evenly: one that came with n bytes ends when each has had n."""

    def __init__(self, bandwidth):
        self.bandwidth, self.now, self.each, self.under_way = bandwidth, 0.0, 0.0, []

    def advance(self, now):
        if self.under_way:
            self.each += (now - self.now) * self.bandwidth / len(self.under_way)
        self.now = now

    def add(self, now, size, then):
        self.advance(now)
        heapq.heappush(self.under_way, (self.each + size, *then))

    def next_end(self):
        if not self.under_way:
            return float("inf")
        return self.now + max(0.0, self.under_way[0][0] - self.each) * len(self.under_way) / self.bandwidth

    def end(self):
        self.advance(self.next_end())
        return self.now, heapq.heappop(self.under_way)[1:]


class Extraction:
    """What each process does next is a step: claim, claimed, part (of computing and reading), wrote, committed."""

    def __init__(self, options, processes):
        self.options, self.storage = options, Storage(options.storage)
        self.rate = [options.rate * (1 + options.spread * ((2 * process + 1) / processes - 1))
                     for process in range(processes)]
        self.left, self.claims, self.shards, self.lock_free = options.items, 0, 0, 0.0
        self.items, self.parts = [0] * processes, [0] * processes
        self.events = [(options.start, process, "claim") for process in range(processes)]

    def run(self):
        now = 0.0
        while self.events or self.storage.under_way:
            if self.events and self.events[0][0] <= self.storage.next_end():
                now, process, step = heapq.heappop(self.events)
            else:
                now, (process, step) = self.storage.end()
            getattr(self, step)(now, process)
        return now

    def lock(self, now, seconds, process, step):
        self.lock_free = max(now, self.lock_free) + seconds
        heapq.heappush(self.events, (self.lock_free, process, step))

    def claim(self, now, process):
        held = self.options.claim + self.options.each * (self.claims + self.shards)
        if self.left > 0:
            self.items[process] = min(self.options.shard, self.left)
            self.left -= self.items[process]
            self.claims += 1
            self.lock(now, held, process, "claimed")

    def claimed(self, now, process):
        items = self.items[process]
        self.parts[process] = 2
        heapq.heappush(self.events, (now + items / self.rate[process], process, "part"))
        self.storage.add(now, items * self.options.read, (process, "part"))

    def part(self, now, process):
        self.parts[process] -= 1
        if self.parts[process] == 0:
            self.storage.add(now, self.items[process] * self.options.write, (process, "wrote"))

    def wrote(self, now, process):
        self.lock(now, self.options.commit + self.options.each * self.shards, process, "committed")

    def committed(self, now, process):
        self.claims -= 1
        self.shards += 1
        self.claim(now, process)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("processes", type=int, nargs="+", metavar="PROCESSES")
    for name, value, meaning in (("items", 5120, "to extract"), ("shard", 1024, "items of a shard")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{meaning} ({value})")
    for name, value, meaning in (
            ("rate", 20, "items a second of a process"), ("spread", 0.02, "by how much rates differ, as a share"),
            ("start", 0.2, "seconds until a process asks for its first shard"),
            ("read", 100, "bytes of an item that are read"), ("write", 1e4, "and written"),
            ("storage", 1e9, "bytes a second of all processes together"),
            ("claim", 2e-3, "seconds that taking a shard holds the lock"),
            ("each", 1.5e-6, "and more for each claim and shard there is"),
            ("commit", 3e-3, "seconds that committing one holds it")):
        parser.add_argument(f"--{name}", type=float, default=value, help=f"{meaning} ({value:g})")
    return parser.parse_args()


def main():
    options = read_options()
    alone = Extraction(options, 1).run()
    for processes in options.processes:
        seconds = Extraction(options, processes).run()
        print(processes, f"{seconds:.2f}", f"{options.items / seconds:.1f}", f"{alone / seconds / processes:.3f}")


if __name__ == "__main__":
    main()
