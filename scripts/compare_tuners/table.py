"""Recorded curves of one task and one training seed, and what a run of a tuner on them comes to."""

from __future__ import annotations

import math
import statistics

EVALUATIONS = 27
REACHED_BY = 0.05  # of all configurations: the score that these reach is the target

# Two-sided 95 % of Student's t for 1 to 9 degrees of freedom.
STUDENT_T = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


class Table:
    """What one network of a task reaches at each evaluation, for each configuration (batch, optimizer, index of the rate)."""

    def __init__(self, found: dict, task: str, seed: int):
        about = found["tasks"][task]
        self.task, self.seed, self.metric, self.more = task, seed, about["metric"], about["more"]
        self.samples, self.samples_per_s = about["samples"], about["samples_per_s"]
        self.rates, self.batches, self.optimizers = found["rates"], found["batches"], found["optimizers"]
        rows = {key: found["curves"][f"{task}/{seed}/{key}"] for key in self.samples_per_s}
        self.held_out = {key: row["held_out"] for key, row in rows.items()}
        self.test = {key: row["test"] for key, row in rows.items()}

    def nearest(self, rate: float) -> int:
        return min(range(len(self.rates)), key=lambda i: abs(math.log(self.rates[i] / rate)))

    def value(self, batch, optimizer: str, rate: int, evaluation: int, part: str = "held_out") -> float:
        """The metric; not a number where training had diverged."""
        found = getattr(self, part)[f"{batch}/{optimizer}"][rate][evaluation - 1]
        return math.nan if found is None else found

    def score(self, *place) -> float:
        """The metric with its sign turned where less is better."""
        value = self.value(*place)
        return -math.inf if math.isnan(value) else value if self.more else -value

    def bests(self) -> list:
        """The best score of each configuration, the highest first."""
        return sorted((max(self.score(*key.split("/"), rate, e + 1) for e in range(EVALUATIONS)) for key in self.held_out
                       for rate in range(len(self.rates))), reverse=True)

    def target(self) -> float:
        """The score that the best part of all configurations reaches at its best."""
        bests = self.bests()
        return bests[round(REACHED_BY * len(bests)) - 1]

    def as_replay(self) -> dict:
        return {"metric": self.metric, "samples": self.samples, "samples_per_s": self.samples_per_s, "rates": self.rates,
                "held_out": self.held_out}


def came_to(table: Table, events: list, budget: int) -> dict:
    """What a run's evaluations, in their order, (batch, optimizer, rate, evaluation), reached: the best on what was held out, the test
    metric of the same network at the same moment, how far the first is below the best of all configurations, and the evaluations and
    seconds of training (one network alone on one core) until the target was there, and in all."""
    best, where, reached, reached_s, seconds, target = -math.inf, None, None, None, 0.0, table.target()
    for number, place in enumerate(events[:budget], 1):
        score = table.score(*place)
        seconds += table.samples / table.samples_per_s[f"{place[0]}/{place[1]}"]
        if score > best:
            best, where = score, place
        if reached is None and score >= target:
            reached, reached_s = number, round(seconds, 2)
    chosen = {"batch": int(where[0]), "optimizer": where[1], "lr": round(table.rates[where[2]], 6), "evaluation": where[3]}
    return {"held_out": table.value(*where), "regret": round(table.bests()[0] - best, 4), "test": table.value(*where, part="test"),
            "reached": reached, "reached_s": reached_s, "spent": min(len(events), budget), "spent_s": round(seconds, 2), "chosen": chosen}


def with_interval(values: list) -> str:
    """Mean and 95 % interval of Student's t."""
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    half = STUDENT_T[min(len(values) - 2, len(STUDENT_T) - 1)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.3f} ± {half:.3f}"


def _to_target(runs: list, budget: int) -> str:
    """Medians over all runs; a run that did not come there took longer than those that did."""
    middle, seconds = (statistics.median(run[what] or math.inf for run in runs) for what in ("reached", "reached_s"))
    count = sum(run["reached"] is not None for run in runs)
    return (f"{middle:.0f}, {seconds:.3g} s" if math.isfinite(middle) else f"not within {budget}") + f" ({count} of {len(runs)})"


def joined(parts: list) -> dict:
    """Runs of several files as those of one."""
    whole = {**parts[0], "tasks": {}, "runs": {}, "versions": {}}
    for part in parts:
        whole["tasks"].update(part["tasks"])
        whole["versions"].update(part["versions"])
        for tuner, tasks in part["runs"].items():
            for task, rows in tasks.items():
                whole["runs"].setdefault(tuner, {}).setdefault(task, {}).update(rows)
    return whole


def as_markdown(found: dict) -> str:
    """One table a task: first the tuners that came nearest to the best of all configurations."""
    lines = []
    for task, about in found["tasks"].items():
        runs = {tuner: rows for tuner, by_task in found["runs"].items() if (rows := list(by_task.get(task, {}).values()))}
        order = sorted(runs, key=lambda tuner: statistics.mean(row["regret"] for row in runs[tuner]))
        lines += ["", f"**{task}**, {about['metric']}{'' if about['more'] else ' (less is better)'}; target {about['target']}", "",
                  "| tuner | held out, below the best of all | test | to the target: evaluations, training | in all |",
                  "| --- | --- | --- | --- | --- |"]
        for tuner in order:
            rows = runs[tuner]
            lines.append(f"| {tuner} | {with_interval([row['regret'] for row in rows])} | {with_interval([row['test'] for row in rows])} "
                         f"| {_to_target(rows, found['budget'])} | {statistics.mean(row['spent'] for row in rows):.0f}, "
                         f"{statistics.mean(row['spent_s'] for row in rows):.3g} s |")
    return "\n".join(lines).strip()
