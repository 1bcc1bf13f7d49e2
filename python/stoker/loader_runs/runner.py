"""python -m stoker loader-runs: calibrates each scenario once, then times real DataLoaders, repetitions interleaved."""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time

from ..arguments import Parser
from ..durations import seconds
from ..errors import CaptureError
from ..measure import forked, machine, page_cache, reference, rows_file, signals
from ..measure.leftovers import Warden
from ..plain import counted, printable_lines
from . import calibration, epoch, grid, judge, rows, scenarios

_PASSES, _QUICK_PASSES = 8, 3  # attempts at a point at most, in one call
_SAVE_EVERY_S = 15.0
_OVERHEAD_S = 0.35        # one repetition beside its epoch: fork, reference kernel, workers that end
_SEED = 20260
_INTERRUPTED = 130        # exit code, 128 + SIGINT
_MORE_PROBES = 2          # where the machine's speed was off


def parser():
    p = Parser(
        prog="stoker loader-runs",
        description="Times real PyTorch DataLoaders on this machine and writes a rows file for stoker validate --input.")
    p.add_argument("--out", required=True, metavar="ROWS.json", help="continued when it exists")
    p.add_argument("--scenario", action="append", metavar="NAME", help=f"{', '.join(scenarios.MAKERS)}; may repeat")
    p.add_argument("--pipeline", metavar="FILE.py:FUNCTION", help="your own Dataset or DataLoader instead")
    p.add_argument("--points", rare=True, metavar="FILE", help="JSON list of points, each with its scenario's name")
    p.add_argument("--drawn", rare=True, type=int, default=0, metavar="N", help="N more points a scenario, drawn by --seed")
    p.add_argument("--seed", rare=True, type=int, default=1, metavar="N", help="of --drawn (default 1)")
    p.add_argument("--quick", action="store_true", help="few points, one repetition, short epochs")
    p.add_argument("--budget", metavar="TIME", help="begin nothing that would end later (default 20m; 3m with --pipeline; "
                   "2m with --quick)")
    p.add_argument("--probe-budget", rare=True, metavar="TIME", help="of one calibration (default 20s, 5s with --quick)")
    p.add_argument("--recalibrate", rare=True, action="append", default=[], metavar="NAME",
                   help="a new calibration for this scenario's points in the file; may repeat")
    p.add_argument("--probes", rare=True, type=int, metavar="N", help="of one scenario, of which the better values count (default 2)")
    p.add_argument("--calibrate-only", rare=True, action="store_true", help="no epochs")
    p.add_argument("--end-with-parent", rare=True, action="store_true", help="stop when the process that called this ends")
    p.add_argument("--quiet", action="store_true", help="say nothing but errors")
    return p


def probed(scenario, budget_s: float, transport, warden: Warden | None = None) -> dict:
    """The one calibration of a scenario: its pipeline probe. `transport` is measured once per machine."""
    from ..pipeline import probe_pipeline

    data = scenario.own
    if data is None:
        # The pool once: a part of it, drawn at random, would have another mean than the epochs.
        data = scenario.loader(grid.point(scenario, workers=1), scenario.pool, 0)
    probe = forked.in_child(lambda: probe_pipeline(data, name=scenario.name, budget_s=budget_s, transport=transport),
                            10 * budget_s + 60, warden=warden)
    if "error" in probe:
        sys.stderr.write(printable_lines(probe.get("trace", "")))
        raise CaptureError(f"the probe of {scenario.name} failed: {probe['error']}")
    return probe


def _listed(path: str) -> list:
    """The points of a --points file."""
    try:
        with open(path) as file:
            points = json.load(file)
        known = {"scenario", "batch", *grid.DEFAULTS}
        if not all(isinstance(p, dict) and "scenario" in p and set(p) <= known for p in points):
            raise ValueError(f"each point is an object with a scenario and of {', '.join(sorted(known - {'scenario'}))}")
        return points
    except (OSError, ValueError, TypeError) as error:
        raise CaptureError(f"--points {path} cannot be used ({error})") from None


def _seconds_lived() -> float:
    """Since this process was started; 0 where Linux does not say."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return 0.0


class Run:
    """The state of one call."""

    def __init__(self, options, say, warden: Warden | None = None):
        self.options, self.say, self.warden = options, say, warden
        # The budget holds for all of the command: what starting Python and importing took is spent already.
        self.end = time.monotonic() - _seconds_lived() + seconds(
            options.budget or ("2m" if options.quick else "3m" if options.pipeline else "20m"), "--budget")
        self.file = rows.read(options.out) if rows_file.begun(options.out) else rows.empty()
        self.chosen = _listed(options.points) if options.points else None
        self.reference = reference.Kernel(reference.LOADING)
        self.scenarios = {}

    def left(self) -> float:
        return self.end - time.monotonic()

    def save(self) -> None:
        rows.write(self.file, self.options.out)

    def find_scenarios(self, folder: str) -> None:
        if self.options.pipeline:
            scenario = scenarios.own(self.options.pipeline)
            self.scenarios[scenario.name] = scenario
            return
        for name in self.options.scenario or scenarios.MAKERS:
            if name not in scenarios.MAKERS:
                raise CaptureError(f"there is no scenario {name}: choose from {', '.join(scenarios.MAKERS)}")
            try:
                self.scenarios[name] = scenarios.MAKERS[name](folder)
            except scenarios.Skipped as why:
                self.file["skipped"] = [s for s in self.file["skipped"] if s["name"] != name]
                self.file["skipped"].append({"name": name, "why": str(why)})
                self.say(f"skipped {name}: {why}")

    def calibrate(self) -> None:
        if self.file["reference_ms"] is None:
            self.file["reference_ms"] = round(self.reference.usual(), 4)
        budget = seconds(self.options.probe_budget or ("5s" if self.options.quick else "20s"), "--probe-budget")
        for name, scenario in self.scenarios.items():
            entry = rows.scenario_of(self.file, name)
            if entry is not None and name not in self.options.recalibrate:
                continue
            if self.left() < budget:
                self.say(f"no time left to calibrate {name}")
                continue
            start = time.monotonic()
            probe, speed = self._probe(scenario, budget)
            if entry is None:
                entry = {"name": name, "what": scenario.what, "batches_differ": scenario.batches_differ,
                         "cut": scenario.cut, "pool": scenario.pool, "points": []}
                self.file["scenarios"].append(entry)
            entry.update(speed_at_probe=round(speed, 4), probe=probe)
            if any(point["cold"] for point in grid.full(scenario)):
                entry["cold_reads"] = forked.in_child(lambda: page_cache.cold_reads(scenario.files), 120, warden=self.warden)
            self.save()
            self.say(f"calibrated {name} in {time.monotonic() - start:.0f} s: "
                     f"{statistics.mean(probe['sample']['cpu_ms']):.3f} ms a sample")

    def _probe(self, scenario, budget_s: float) -> tuple:
        """(probe, speed of the machine meanwhile): the better of two probes at the machine's usual speed."""
        known = next((s["probe"]["transport"] for s in self.file["scenarios"] if s["probe"].get("transport")), None)
        wanted = self.options.probes or (1 if self.options.quick or self.options.pipeline else 2)
        found = []
        for _ in range(wanted + _MORE_PROBES):
            self.reference.settle(self.file["reference_ms"] * judge.SETTLED)
            before = self.reference.milliseconds()
            probe = probed(scenario, budget_s, known, self.warden)
            speed = 2 * self.file["reference_ms"] / (before + self.reference.milliseconds())
            cost = statistics.mean(probe["sample"]["cpu_ms"])
            found.append((abs(speed - 1) > judge.MAX_SPEED, cost, speed, probe))
            if sum(not off for off, *_ in found) >= wanted or self.left() < 3 * budget_s:
                break
        off, _, speed, _ = min(found, key=lambda attempt: attempt[:2])
        probe = calibration.better([attempt[3] for attempt in found if attempt[0] == off])
        if off:
            self.say(f"warning: {scenario.name} was calibrated at {speed:.2f} of the machine's speed")
        self.say(f"{scenario.name}: {', '.join(f'{a[1]:.4f} ms a sample at speed {a[2]:.2f}' for a in found)}")
        return probe, speed

    def wanted_points(self) -> list:
        """(scenario, entry of the rows file, point) of everything that is to be measured."""
        found = []
        for name, scenario in self.scenarios.items():
            entry = rows.scenario_of(self.file, name)
            if entry is None:
                continue
            if self.chosen is not None:
                points = [grid.point(scenario, **{k: v for k, v in p.items() if k != "scenario"})
                          for p in self.chosen if p["scenario"] == name]
            else:
                points = (grid.quick if self.options.quick else grid.own if self.options.pipeline else grid.full)(scenario)
            points += grid.drawn(scenario, self.options.drawn, self.options.seed)
            usable = machine.this().affinity_cores
            for wanted in points:
                wanted["cores"] = min(wanted["cores"], usable)
                found.append((scenario, entry, self._entry_of(scenario, entry, wanted)))
        return found

    def _entry_of(self, scenario, entry: dict, wanted: dict) -> dict:
        known = rows.point_of(entry, wanted)
        if known is None:
            each, scale = grid.sample_ms(entry["probe"], wanted["workers"]), 0.25 if self.options.quick else 1.0
            if scenario.cut:
                samples = grid.cut_samples(wanted, each, entry["probe"]["samples"], scale)
            else:
                samples = grid.samples_of(scenario, wanted, each, scale)
            known = {**wanted, "samples": samples, "repetitions": []}
            entry["points"].append(known)
        return known

    def measure(self) -> int:
        """Passes over all points in shuffled order until each is settled; the number of points that are not."""
        todo = self.wanted_points()
        needed = self.file["needed"] = 1 if self.options.quick else 2
        chance = random.Random(_SEED)
        longest, spent = {}, time.monotonic()
        for _ in range(_QUICK_PASSES if self.options.quick else _PASSES):
            order = list(range(len(todo)))
            chance.shuffle(order)
            # A call that continues takes up where the last one stopped: points with fewer repetitions first.
            order.sort(key=lambda i: len(todo[i][2]["repetitions"]))
            for at in order:
                scenario, _, point = todo[at]
                if rows.settled(point, needed):
                    continue
                # A point that was not tried yet may take as long as the longest that was.
                expected = longest.get(at, max([2 * grid.TARGET_S, *longest.values()]))
                if self.left() < expected + _OVERHEAD_S:
                    continue
                mark = time.monotonic()
                row = epoch.repetition(scenario, point, _SEED + len(point["repetitions"]), self.reference,
                                       self.file["reference_ms"], self.warden,
                                       limit_s=min(epoch.MAX_EPOCH_S, max(1.0, self.left() - _OVERHEAD_S)))
                point["repetitions"].append(row)
                longest[at] = max(longest.get(at, 0), time.monotonic() - mark)
                if time.monotonic() - spent > _SAVE_EVERY_S:
                    self.save()
                    spent = time.monotonic()
                    self.say(self._progress(todo, needed))
        self.save()
        self.say(self._progress(todo, needed))
        return sum(not rows.settled(point, needed) for _, _, point in todo)

    def _progress(self, todo: list, needed: int) -> str:
        settled = sum(rows.settled(point, needed) for _, _, point in todo)
        all_, bad = 0, 0
        for _, _, point in todo:
            all_ += len(point["repetitions"])
            bad += len(point["repetitions"]) - len(rows.good(point))
        return (f"{settled} of {len(todo)} points are settled; {all_} repetitions, {bad} thrown away; "
                f"{max(0.0, self.left()):.0f} s left")


def main(arguments: list) -> int:
    options = parser().parse_args(arguments)
    rows_file.check_place(options.out)

    def say(text):
        if not options.quiet:
            print(f"stoker: {printable_lines(text)}", file=sys.stderr, flush=True)

    signals.catch(options.end_with_parent)
    with Warden("stoker-loader-runs-") as warden:
        signals.adopt_orphans()
        run = Run(options, say, warden)
        try:
            run.find_scenarios(warden.folder)
            run.calibrate()
            missing = 0 if options.calibrate_only else run.measure()
        except KeyboardInterrupt:
            if run.file["scenarios"]:
                run.save()
                say(rows_file.interrupted(options.out))
            else:
                say("interrupted before anything was measured")
            return _INTERRUPTED
    if missing:
        say(f"{counted(missing, 'point')} {'is' if missing == 1 else 'are'} not settled so far; run the same command again to go on")
    return 0
