"""200 short trials run by several tools: what it costs, and what is lost when the controller dies.

    python bench/study/rivals.py --kills 5 [--only stoker,joblib]

Each tool runs once undisturbed, then again from the start with its controller killed by SIGKILL at random instants and started
again each time as its user would. A ledger that trials write to themselves tells what really ran.
"""

from __future__ import annotations

import argparse
import collections
import importlib.metadata
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent / "rivals"
COMMAND = 'echo "begin {n}" >> "$LEDGER"; sleep 0.02; echo "end {n}" >> "$LEDGER"'
TOOLS = ("stoker", "joblib", "optuna", "ray", "submitit")
PACKAGES = {"optuna": ("optuna", "joblib")}
TRIALS = 200


def words_of(tool: str) -> list:
    if tool == "stoker":
        binary = os.environ.get("STOKER_BINARY", "stoker")
        flags = ["--at-most", "2", "--quiet", "--json", "--retry", "lost", "--shell"]
        return [binary, "sweep", "--vary", f"n=1..{TRIALS}", *flags, "--", COMMAND]
    return [sys.executable, str(HERE / f"with_{tool}.py")]


def lines_of(tool: str) -> int:
    """Lines that a user writes: neither blank nor documentation; the command of stoker is one."""
    if tool == "stoker":
        return 1
    text = (HERE / f"with_{tool}.py").read_text().split('"""', 2)[2]
    return sum(bool(line.strip()) for line in text.splitlines())


def version_of(tool: str) -> str:
    if tool == "stoker":
        done = subprocess.run([words_of(tool)[0], "--version"], capture_output=True, text=True, check=True)
        return done.stdout.split()[-1]
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES.get(tool, (tool,)))


def start(tool: str, folder: pathlib.Path) -> subprocess.Popen:
    env = dict(os.environ, LEDGER=str(folder / "ledger"), PYTHONPATH=str(HERE), RAY_AIR_NEW_OUTPUT="0", PYTHONWARNINGS="ignore",
               RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0", RAY_TMPDIR=str(folder.parent / "ray"))
    with open(folder / "log", "ab") as log, open(folder / "output", "wb") as output:  # a pipe would wait for what is left over
        return subprocess.Popen(words_of(tool), cwd=folder, env=env, stdout=output, stderr=log, start_new_session=True)


def left_over(folder: pathlib.Path) -> list:
    """Processes that belong to a run in this folder, by their environment."""
    mark = f"LEDGER={folder}/ledger".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def clean(folder: pathlib.Path) -> None:
    for process in left_over(folder):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def ledger_of(folder: pathlib.Path) -> collections.Counter:
    path = folder / "ledger"
    return collections.Counter(path.read_text().split("\n")[:-1] if path.exists() else [])


def results_in(output: bytes, tool: str) -> int:
    text = output.decode(errors="replace")
    if tool == "stoker":
        return json.loads(text)["counts"].get("done", 0) if text.strip() else 0
    found = [line for line in text.splitlines() if line.startswith("results ")]
    return int(found[-1].split()[1]) if found else 0


def to_the_end(tool: str, folder: pathlib.Path, limit: float) -> tuple:
    began, before = time.monotonic(), os.times()
    process = start(tool, folder)
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        clean(folder)
        return None, None, 0
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, cpu, results_in((folder / "output").read_bytes(), tool)


def wait_for(process: subprocess.Popen, folder: pathlib.Path, ended: int, limit: float) -> bool:
    """Until so many trials have ended, or the controller has; false: it ended first."""
    until = time.monotonic() + limit
    while time.monotonic() < until and process.poll() is None:
        if sum(line.startswith("end ") for line in ledger_of(folder)) >= ended:
            return True
        time.sleep(0.01)
    return process.poll() is None


def killed(tool: str, folder: pathlib.Path, what: str, kills: int, chance: random.Random, limit: float) -> dict:
    """Kills while trials run, spread over the study, each followed by a start; then what the ledger and the tool say."""
    done, orphans = 0, 0
    for ended in sorted(chance.sample(range(5, TRIALS - 20), kills)):
        process = start(tool, folder)
        if wait_for(process, folder, ended, limit):
            time.sleep(chance.uniform(0, 0.04))
            done += process.poll() is None
        process.kill()
        if what == "all":
            clean(folder)
        process.wait()
        time.sleep(2)
        orphans = max(orphans, len(left_over(folder)))
        if tool == "ray":  # its own servers keep the next start from its ports
            clean(folder)
    wall, _, results = to_the_end(tool, folder, limit)
    time.sleep(0.5)
    lines = ledger_of(folder)
    said = 0  # trials of which the tool says that it ran them again
    if tool == "stoker":
        with sqlite3.connect(folder / "study.db") as store:
            said = store.execute("SELECT count(*) FROM trials WHERE retry_of IS NOT NULL").fetchone()[0]
    begun = {n: lines.get(f"begin {n}", 0) for n in range(1, TRIALS + 1)}
    clean(folder)
    return {"kills": done, "ended": wall is not None, "never begun": sum(count == 0 for count in begun.values()),
            "begun again": sum(max(count - 1, 0) for count in begun.values()), "said": said, "results": results,
            "processes left": orphans}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--what", choices=("controller", "all"), default="controller", help="or all processes of the tool at once")
    parser.add_argument("--only", default=",".join(TOOLS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=200, help="seconds after which a run counts as one that does not end")
    given = parser.parse_args()
    for tool in given.only.split(","):
        chance = random.Random(given.seed)
        row = {"tool": tool, "version": version_of(tool), "lines": lines_of(tool)}
        base = pathlib.Path(tempfile.mkdtemp(prefix="rivals-"))
        (base / "alone").mkdir()
        (base / "killed").mkdir()
        try:
            wall, cpu, results = to_the_end(tool, base / "alone", given.limit)
            row |= {"seconds": wall and round(wall, 2), "cpu_s": cpu and round(cpu, 2), "alone": results}
            if given.kills:
                row |= killed(tool, base / "killed", given.what, given.kills, chance, given.limit)
        finally:
            clean(base / "alone")
            clean(base / "killed")
            shutil.rmtree(base, ignore_errors=True)
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
