"""What the tests of this folder share: random jobs from one seed, and a test that tells every fault that it found."""

from __future__ import annotations

import os
import random
import unittest

import draw
from command import GOOD, NO, Done, stoker

SEED = int(os.environ.get("PROPERTIES_SEED", "1"))
COUNT = int(os.environ.get("PROPERTIES_COUNT", "16"))  # random jobs of a test


class Properties(unittest.TestCase):
    def setUp(self) -> None:
        self.stoker, self.faults = stoker(), []
        self.chance = random.Random(f"{SEED} {self.id()}")  # so that one more test moves no other's cases

    def tearDown(self) -> None:
        if self.faults:
            shown = "\n\n".join(self.faults[:8])
            self.fail(f"{len(self.faults)} faults, the first:\n{shown}")

    def expect(self, holds, what: str, *answers: Done) -> bool:
        """Notes a fault and goes on."""
        if not holds:
            self.faults.append("\n".join([what, *map(str, answers)]))
        return bool(holds)

    def jobs(self, count: int = COUNT, most: int = 6) -> list:
        return [draw.job(self.chance, most) for _ in range(count)]

    def answered(self, count: int = COUNT, most: int = 6, given: dict | None = None, more: tuple = ()) -> list:
        """(job, answer) of so many jobs that are answered at all: many that are drawn cannot be."""
        found: list = []
        for _ in range(6):
            jobs = [(model, gpu, {**drawn, **(given or {})}) for model, gpu, drawn in self.jobs(count, most)]
            done = self.stoker.each(draw.predict(*job, *more) for job in jobs)
            found += [(job, answer) for job, answer in zip(jobs, done) if answer.code in (GOOD, NO)]
            if len(found) >= count:
                return found[:count]
        self.fail(f"of {6 * count} jobs {len(found)} can be")

    def good(self, *words) -> Done:
        answer = self.stoker(*words)
        self.assertIn(answer.code, (GOOD, NO), str(answer))
        return answer
