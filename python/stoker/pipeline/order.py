"""The order in which a loader asks for samples, where it is the same in every epoch, and what samples cost in that order.

In a fixed order the costs of neighbours follow each other (every second block slow, long texts at the end), and batch k goes
to worker k mod W: which worker waits for whom follows from the sequence, not from its mean. Whole stretches of
neighbouring batches are measured therefore, spread over the data set.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics

_STRETCHES = 16  # places of the data set, at most
_FEWEST_ANYWHERE = 8  # samples at random places whose mean says something
_ROUNDS = 4  # of all workers in one stretch, at least, where the data set is long enough


class Chunks:
    """The batches of 0, 1, 2, ...: a hundred million samples need no list of them."""

    def __init__(self, samples: int, batch: int):
        self.samples, self.batch = samples, batch

    def __len__(self):
        return -(-self.samples // self.batch)

    def __getitem__(self, number):
        return range(number * self.batch, min((number + 1) * self.batch, self.samples))


@dataclasses.dataclass
class Stretches:
    """Batches of neighbours, and the place in the epoch of the first sample of each."""

    batches: list
    places: list
    whole: bool  # all of the epoch


def stretches(batches, most: int, workers: int, rng: random.Random) -> Stretches:
    """About `most` samples of an epoch's `batches`: stretches that begin where worker 0's turn is, in random order."""
    if isinstance(batches, Chunks):
        places, at = range(0, batches.samples, batches.batch), batches.samples
    else:
        *places, at = itertools.accumulate((len(batch) for batch in batches), initial=0)
    turns = max(1, workers)
    wanted = min(len(batches), max(1, most * len(batches) // max(1, at)))
    count = max(1, min(_STRETCHES, wanted // (_ROUNDS * turns)))
    length = -(-wanted // count)
    room = len(batches) - length
    begins = sorted({int(room * number / max(1, count - 1)) // turns * turns for number in range(count)})
    if at <= most:  # all of them, side by side
        length = -(-length // turns) * turns
        begins = list(range(0, len(batches), length))
    rng.shuffle(begins)
    # In random order: when the time is up, what was measured does not all come from the beginning.
    chosen = [number for begin in begins for number in range(begin, min(begin + length, len(batches)))]
    chosen = list(dict.fromkeys(chosen))  # stretches of a short data set may touch
    return Stretches([batches[number] for number in chosen], [places[number] for number in chosen], at <= most)


def section(plan: list, places: list, whole: bool, costs: dict, own_batch: int, cut: bool, anywhere: list = ()) -> dict | None:
    """The object "order" of the file: costs in the order of asking; None where too little was measured.

    costs: {index: (cpu_ms, wait_ms)}. own_batch: samples of a batch. cut: batches were measured in part. anywhere: wall times
    of samples at random places, which tell whether the stretches speak for the rest.

    A batch that was measured in part, or that has another size than the others (a sampler of batches), counts as
    `own_batch` samples of equal cost: what matters is what a batch takes.
    """
    rows, complete = [], True
    for place, batch in sorted(zip(places, plan), key=lambda pair: pair[0]):
        known = [costs[index] for index in batch if index in costs]
        if not known:
            complete = False
            continue
        if len(known) < len(batch) or cut:
            mean = [sum(values) / len(known) for values in zip(*known)]
            known = [tuple(mean)] * own_batch
            complete = False
        rows.append((place, known))
    if not rows:
        return None
    found, expected = [], None
    for place, known in rows:
        if place != expected:
            found.append({"first": place, "cpu_ms": [], "wait_ms": []})
        found[-1]["cpu_ms"] += [round(cpu, 6) for cpu, _ in known]
        found[-1]["wait_ms"] += [round(wait, 6) for _, wait in known]
        expected = place + len(known)
    return {"whole": whole and complete, "stretches": found, **_of_the_rest(anywhere)}


def _of_the_rest(walls: list) -> dict:
    if len(walls) < _FEWEST_ANYWHERE:
        return {}
    return {"random_ms": round(statistics.fmean(walls), 6),
            "random_error_ms": round(statistics.stdev(walls) / len(walls) ** 0.5, 6)}
