"""Kills controllers and runners of a study at random instants, and says what came of it.

    python torture.py --kills 1000 [--what both] [--seed 1]

Each trial writes a line when it begins and one when it ends into a ledger that no crash can undo. At the end every trial must
have a final state, none may have begun twice, what is done must have begun and ended, and the database must be sound.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

FINAL = ("done", "failed", "timed_out", "out_of_memory", "cancelled", "not_run")
COMMAND = 'echo "begin {trial}" >> ledger; sleep 0.0{n%3}; echo "end {trial}" >> ledger'


class Study:
    """One study of short trials in a folder of its own."""

    def __init__(self, binary: str, folder: pathlib.Path, trials: int):
        self.binary, self.folder = binary, folder
        (folder / "study.toml").write_text(
            f'command = """{COMMAND}"""\nshell = true\n[axes]\nn = "1..{trials}"\n')

    def controller(self) -> subprocess.Popen:
        return subprocess.Popen([self.binary, "sweep", "study.toml", "--at-most", "2", "--quiet"], cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def runners(self) -> list:
        """Process ids in claims of trials without a result."""
        found = []
        for claim in (self.folder / "study.db.trials").glob("*/claim"):
            if not (claim.parent / "result.json").exists():
                words = claim.read_text().split()
                if len(words) == 4:
                    found.append(int(words[1]))
        return found

    def counts(self) -> dict:
        with sqlite3.connect(self.folder / "study.db") as database:
            try:
                return dict(database.execute("SELECT state, count(*) FROM trials GROUP BY state"))
            except sqlite3.OperationalError:  # killed before the tables were made
                return {}

    def complete(self) -> bool:
        counts = self.counts()
        return bool(counts) and all(state in FINAL for state in counts)


def kill_runners(study: Study) -> int:
    count = 0
    for process in study.runners():
        try:
            os.kill(process, signal.SIGKILL)
            count += 1
        except ProcessLookupError:
            pass
    return count


def torture(study: Study, kills: int, what: str, chance: random.Random) -> collections.Counter:
    """Kills until the study is complete or so many kills are done; what was killed, by name."""
    killed: collections.Counter = collections.Counter()
    while sum(killed.values()) < kills and not (killed and study.complete()):
        controller = study.controller()
        time.sleep(chance.uniform(0, 0.25))
        target = chance.choice(("controller", "controller", "runner", "both")) if what == "both" else what
        if target in ("runner", "both") and kill_runners(study):
            killed["runner"] += 1
        if target in ("controller", "both"):
            if controller.poll() is None:
                killed["controller"] += 1
            controller.kill()
        elif controller.poll() is None and chance.random() < 0.5:
            time.sleep(0.05)
        controller.kill()
        error = controller.communicate()[1].decode()
        if error and "is being run by" not in error:
            raise AssertionError(f"a controller said: {error}")
    return killed


def finish(study: Study) -> None:
    for _ in range(5):
        controller = study.controller()
        error = controller.communicate()[1].decode()
        if study.complete():
            return
    raise AssertionError(f"the study does not end: {study.counts()} {error}")


def faults(study: Study) -> list:
    """What went wrong, a sentence each."""
    found = []
    lines = collections.Counter((study.folder / "ledger").read_text().splitlines())
    with sqlite3.connect(study.folder / "study.db") as database:
        if database.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            found.append("the database is damaged")
        rows = database.execute("SELECT id, state, cause FROM trials").fetchall()
        twice = database.execute("SELECT trial, count(*) FROM events WHERE what LIKE 'done%' GROUP BY trial HAVING count(*) > 1")
        found += [f"trial {trial} is done {count} times" for trial, count in twice]
    for line, count in lines.items():
        if count > 1:
            found.append(f"\"{line}\" is in the ledger {count} times")
    for trial, state, cause in rows:
        begun, ended = lines.get(f"begin {trial}", 0), lines.get(f"end {trial}", 0)
        if state == "done" and not (begun and ended):
            found.append(f"trial {trial} is done, and began {begun} and ended {ended} times")
        if state != "done" and cause != "lost":
            found.append(f"trial {trial} is {state} ({cause})")
    return found


def run(binary: str, kills: int, trials: int, what: str, seed: int) -> tuple:
    """Kills until so many kills are done, in as many studies as it takes; kills by name, lost trials, all trials, faults."""
    chance = random.Random(seed)
    killed: collections.Counter = collections.Counter()
    wrong, lost, count = [], 0, 0
    while sum(killed.values()) < kills:
        with tempfile.TemporaryDirectory() as folder:
            study = Study(binary, pathlib.Path(folder), trials)
            killed += torture(study, kills - sum(killed.values()), what, chance)
            finish(study)
            wrong += faults(study)
            counts = study.counts()
            lost += counts.get("failed", 0)
            count += sum(counts.values())
    return killed, lost, count, wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=os.environ.get("STOKER_BINARY", "stoker"))
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--what", choices=("controller", "runner", "both"), default="both")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    killed, lost, trials, wrong = run(given.binary, given.kills, given.trials, given.what, given.seed)
    print(f"{sum(killed.values())} kills ({dict(killed)}) in {trials} trials: {lost} lost and said so, {len(wrong)} faults")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
