#!/usr/bin/env python3
"""Makes two tables from the results of tests/jobs: in all (docs/accuracy/watching.md), and job by job, beside the results.

    tests/jobs/table.py [--results data/measured/watch/jobs.json] [--page docs/accuracy/watching.md]
                        [--jobs data/measured/watch/README.md] [--check]

What stands between the two marks of a page is written anew; with --check nothing is written, and a page that differs is
an error.
"""

import argparse
import collections
import statistics
import sys
from pathlib import Path

import results

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- begin: tests/jobs/table.py -->\n", "<!-- end -->\n"
WITHIN = 5.0  # points


def share(good, all_):
    return f"{good} of {all_} ({100 * good / all_:.0f} %)" if all_ else "none"


def names(runs):
    """What was named first, run by run; once where all agree."""
    said = [run["first"] for run in runs]
    return said[0] if len(set(said)) == 1 else ", ".join(said)


def shares(runs):
    """Medians of what was seen and of what the loop said."""
    seen = statistics.median(run["waits"] for run in runs)
    told = [run["loop"] for run in runs if run["loop"] is not None]
    return f"{seen:.0f} / {statistics.median(told):.0f}" if told else f"{seen:.0f}"


def cures_text(cures):
    """Promise and measurement of the first cure that was tried; more of them follow."""
    parts = []
    for cure in cures:
        value, low, high = cure["promised"]
        held = "" if cure["held"] else ", **missed**"
        parts.append(f"{value:+.0f} [{low:.0f}, {high:.0f}] / {cure['gain']:+.0f}{held}")
    return "; ".join(parts)


def rival_text(rival):
    return rival["says"].lower() if rival else "not run"


def rivals_text(cases):
    """What TraceML said of the jobs that it was given, and of how many."""
    rivals = [case["rival"] for case in cases.values() if case.get("rival")]
    said = collections.Counter(rival["says"].lower() for rival in rivals)
    return f"| TraceML {rivals[0]['version']}, by job | {', '.join(f'{what} {n}' for what, n in said.most_common())} | |"


def in_order(by_number):
    return [by_number[number] for number in sorted(by_number, key=int)]


def row_of(name, case):
    runs = in_order(case.get("runs", {}))
    right = sum(run["right"] for run in runs)
    mark = f"{right} of {len(runs)}" if right == len(runs) else f"**{right} of {len(runs)}**"
    cures = in_order(case.get("cures", {}))
    return (f"| {name} | {names(runs)} | {mark} | {shares(runs)} | {cures_text(cures)} | "
            f"{rival_text(case.get('rival'))} |")


def summary(cases):
    planted = [run for case in cases.values() if case["expected"] for run in case.get("runs", {}).values()]
    healthy = [run for case in cases.values() if not case["expected"] for run in case.get("runs", {}).values()]
    told = [run for case in cases.values() for run in case.get("runs", {}).values() if run["loop"] is not None]
    cures = [cure for case in cases.values() for cure in case.get("cures", {}).values()]
    near = sum(abs(run["waits"] - run["loop"]) <= WITHIN for run in told)
    # Validation lies between the batches of a loop, and not within its training steps.
    steps = [abs(run["batches"] / run["rate"] - 1) for run in told if run.get("batches") and run["rate"]
             and run["first"] != "validation_stalls"]
    rhythms = [run for run in told if run.get("rhythm") and run["rate"]]
    steady = sum(run["rhythm"][1] <= 1 / run["rate"] <= run["rhythm"][2] for run in rhythms)
    owns = [run for run in told if run.get("own")]
    held = sum(run["own"][1] <= run["loop"] <= run["own"][2] for run in owns)
    widths = [cure["promised"][2] - cure["promised"][1] for cure in cures]
    lines = ["| measure | | goal |", "|---|---|---|",
             f"| planted cause named first | {share(sum(run['right'] for run in planted), len(planted))} | 90 % |",
             f"| healthy jobs without a finding | {share(sum(run['right'] for run in healthy), len(healthy))} | 95 % |",
             f"| share of waiting within 5 points of the loop's own | {share(near, len(told))} | all |",
             f"| gain of the first cure within its band | {share(sum(cure['held'] for cure in cures), len(cures))} | 8 of 10 |"]
    if steps:
        lines.append(f"| batches a second beside the loop's own steps a second: median error, and nine in ten | "
                     f"{100 * statistics.median(steps):.1f} %, {100 * sorted(steps)[int(0.9 * len(steps))]:.1f} % | |")
    if owns:
        width = statistics.median(run["own"][2] - run["own"][1] for run in owns)
        lines.append("| loading without workers, by whose code runs: the loop's own share within the band (its width, "
                     f"median, in points) | {share(held, len(owns))} ({width:.0f}) | |")
    if rhythms:
        lines.append("| rhythm of the main thread, where one was seen: the loop's own step within its band | "
                     f"{share(steady, len(rhythms))} | |")
    if widths:
        lines.append(f"| width of that band, median | {statistics.median(widths):.0f} points | |")
    return lines


def words_of(machine):
    return (f"{machine['cores']} cores ({machine['processor']}), kernel {machine['kernel']}, Python {machine['python']}, "
            f"PyTorch {machine['torch']}, stoker {machine['stoker']}, {machine['date']}.")


def cases_of(found):
    return {name: case for name, case in found["cases"].items() if case.get("runs")}


def summary_text(found):
    cases = cases_of(found)
    rivals = [rivals_text(cases)] if any(case.get("rival") for case in cases.values()) else []
    return "\n".join([words_of(found["machine"]), "", *summary(cases), *rivals]) + "\n"


def jobs_text(found):
    cases = cases_of(found)
    version = next((case["rival"]["version"] for case in cases.values() if case.get("rival")), None)
    rival = f"TraceML {version}" if version else "TraceML"
    lines = [f"| job | named first | right | waits, %: seen / the loop says | first cure, %: promised / measured | {rival} |",
             "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(row_of(name, case) for name, case in cases.items())]) + "\n"


def put(path, text, results_path, check):
    """Writes `text` between the marks of a page, or exits where `check` finds another one there."""
    page = path.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after and END not in rest:
        sys.exit(f"{path} has no {BEGIN.strip()} with its end")
    fresh = before + BEGIN + text + END + after
    if not check:
        path.write_text(fresh)
    elif fresh != page:
        sys.exit(f"{path} is not what {results_path} says: run tests/jobs/table.py")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--results", default=ROOT / "data" / "measured" / "watch" / "jobs.json")
    p.add_argument("--page", default=ROOT / "docs" / "accuracy" / "watching.md", type=Path)
    p.add_argument("--jobs", default=ROOT / "data" / "measured" / "watch" / "README.md", type=Path)
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    found = results.load(a.results)
    put(a.page, summary_text(found), a.results, a.check)
    put(a.jobs, jobs_text(found), a.results, a.check)
    return 0


if __name__ == "__main__":
    sys.exit(main())
