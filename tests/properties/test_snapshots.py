"""Snapshots of a made-up allocator whose every state is known: what `stoker explain` finds of a moment is what was held."""

from __future__ import annotations

import collections
import gzip
import itertools
import pickle
import unittest

from cases import Properties
from command import GOOD

SMALL, LARGE, ROUND = 2 << 20, 20 << 20, 512
PLACES = [("train.py", 12, "forward"), ("net.py", 40, "attention"), ("train.py", 30, "step")]


class Allocator:
    """Segments with blocks side by side, kept as PyTorch's snapshots tell them; each request has the stack of one place."""

    def __init__(self, chance):
        self.chance, self.trace, self.segments = chance, [], {}
        self.addresses, self.time = itertools.count(0x7F0000000000, 1 << 30), itertools.count(1_000_000, 10)
        self.live: dict = {}  # address: (requested, bytes of the block, place)
        self.course: list = []  # (event, bytes of rounded requests, blocks) after each event

    def event(self, action: str, address: int, size: int, place=None) -> None:
        frames = [{"filename": place[0], "line": place[1], "name": place[2]}] if place else []
        self.trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": next(self.time), "frames": frames})
        asked = sum(-(-requested // ROUND) * ROUND for requested, _, _ in self.live.values())
        self.course.append((len(self.trace) - 1, asked, dict(self.live)))

    def room(self, size: int) -> tuple:
        """Where a block goes, and the gap that it finds there: the first that is large enough, or a new segment."""
        whole = SMALL if size <= 1 << 20 else max(LARGE, -(-size // SMALL) * SMALL)
        for start, (total, _) in self.segments.items():
            if (total == SMALL) != (whole == SMALL):
                continue
            at = start
            for address in sorted(a for a in self.live if start <= a < start + total):
                if address - at >= size:
                    return at, address - at
                at = address + self.live[address][1]
            if start + total - at >= size:
                return at, start + total - at
        start = next(self.addresses)
        self.segments[start] = (whole, "small" if whole == SMALL else "large")
        self.event("segment_alloc", start, whole)
        return start, whole

    def allocate(self, requested: int, place) -> int:
        rounded = -(-requested // ROUND) * ROUND
        address, gap = self.room(rounded)
        # A large block takes what is left behind it up to 1 MiB.
        self.live[address] = (requested, gap if rounded > 1 << 20 and gap - rounded <= 1 << 20 else rounded, place)
        self.event("alloc", address, requested, place)
        return address

    def free(self, address: int) -> None:
        size = self.live[address][0]
        self.event("free_requested", address, size)
        del self.live[address]
        self.event("free_completed", address, size)

    def snapshot(self) -> dict:
        segments = []
        for start, (total, kind) in self.segments.items():
            blocks, at = [], start
            for address in sorted(a for a in self.live if start <= a < start + total):
                requested, rounded, place = self.live[address]
                if address > at:
                    blocks.append({"address": at, "size": address - at, "state": "inactive", "frames": []})
                blocks.append({"address": address, "size": rounded, "requested_size": requested, "state": "active_allocated",
                               "frames": [{"filename": place[0], "line": place[1], "name": place[2]}]})
                at = address + rounded
            if at < start + total:
                blocks.append({"address": at, "size": start + total - at, "state": "inactive", "frames": []})
            held = sum(block["size"] for block in blocks if block["state"] != "inactive")
            segments.append({"device": 0, "address": start, "total_size": total, "stream": 0, "segment_type": kind,
                             "allocated_size": held, "active_size": held, "requested_size": held, "blocks": blocks})
        return {"segments": segments, "device_traces": [self.trace], "allocator_settings": {}}


class Snapshots(Properties):
    def made(self) -> Allocator:
        made = Allocator(self.chance)
        for _ in range(self.chance.randint(30, 120)):
            if made.live and self.chance.random() < 0.4:
                made.free(self.chance.choice(sorted(made.live)))
            else:
                made.allocate(self.chance.choice((self.chance.randint(1, 4000), self.chance.randint(5000, 900_000),
                                                  self.chance.randint(2 << 20, 30 << 20))), self.chance.choice(PLACES))
        return made

    def explained(self, content: bytes, *more) -> dict:
        path = self.stoker.folder / "made.pickle"
        path.write_bytes(content)
        done = self.stoker.run("explain", str(path), "--json", *more)
        self.assertEqual(done.code, GOOD, str(done))
        return done.json

    def check(self, live: dict, blocks: dict, what: str) -> None:
        self.expect(live["allocated_bytes"] == sum(rounded for _, rounded, _ in blocks.values()),
                    f"{what}: {live['allocated_bytes']} bytes are allocated, {sum(r for _, r, _ in blocks.values())} were")
        self.expect(live["requested_bytes"] == sum(requested for requested, _, _ in blocks.values()), f"{what}: requested bytes")
        holders = collections.Counter()
        for _, rounded, place in blocks.values():
            holders[place] += rounded
        told = {(row["where"]): row["bytes"] for row in live["holders"]}
        self.expect(len(told) == len(holders) and sorted(told.values()) == sorted(holders.values()), f"{what}: {told}, held {holders}")
        for (file, line, _), size in holders.items():
            found = [where for where in told if file in where and str(line) in where]
            self.expect(len(found) == 1 and told[found[0]] == size, f"{what}: {file}:{line} holds {size}, told {told}")

    def test_the_end_is_what_the_segments_hold(self):
        for protocol in (2, 3, 4, 5):
            made = self.made()
            told = self.explained(pickle.dumps(made.snapshot(), protocol=protocol), "--at", "end")
            self.check(told["live"], made.live, f"protocol {protocol}, end")
            reserved = sum(total for total, _ in made.segments.values())
            self.expect(told["live"]["reserved_bytes"] == reserved, f"{told['live']['reserved_bytes']} of {reserved} reserved")

    def test_the_peak_is_the_first_moment_of_most_bytes(self):
        for _ in range(6):
            made = self.made()
            event, _, blocks = max(made.course, key=lambda moment: (moment[1], -moment[0]))
            told = self.explained(pickle.dumps(made.snapshot()), "--at", "peak")["live"]
            self.expect(told["event"] == event, f"event {told['event']}, the first of most bytes is {event}")
            self.check(told, blocks, "peak")

    def test_a_trace_that_lost_its_beginning_has_the_same_end_and_peak(self):
        for _ in range(4):
            made = self.made()
            whole = made.snapshot()
            lost = self.chance.randint(1, len(made.trace) // 2)
            whole["device_traces"] = [made.trace[lost:]]
            event, _, blocks = max(made.course[lost:], key=lambda moment: (moment[1], -moment[0]))
            told = self.explained(pickle.dumps(whole), "--at", "peak")["live"]
            before = made.course[lost - 1][1]
            if before >= made.course[event][1]:
                continue  # the peak is the state before the first event that is left
            self.expect(told["event"] == event - lost, f"event {told['event']}, the first of most bytes is {event - lost}")
            self.check(told, blocks, "peak of a cut trace")

    def test_gzip_is_known_by_its_content(self):
        content = pickle.dumps(self.made().snapshot())
        plain, packed = self.explained(content), self.explained(gzip.compress(content))
        self.assertEqual(plain["live"], packed["live"])

    def test_a_file_that_was_cut_anywhere_is_told_or_refused_in_a_sentence(self):
        content = pickle.dumps(self.made().snapshot())
        for _ in range(12):
            path = self.stoker.folder / "cut.pickle"
            path.write_bytes(content[:self.chance.randint(1, len(content) - 1)])
            done = self.stoker.run("explain", str(path), "--json")
            fine = done.code == GOOD and done.json["live"]["allocated_bytes"] >= 0
            self.expect(fine or (done.code == 3 and not done.out and done.error.startswith("stoker")), "is neither", done)


if __name__ == "__main__":
    unittest.main()
