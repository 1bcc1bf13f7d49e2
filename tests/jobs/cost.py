#!/usr/bin/env python3
"""What `stoker watch` costs: its own CPU time and memory, and what it takes from the job that it watches.

    tests/jobs/cost.py --stoker build/release/stoker [workers] [processes] [slowdown] [memory]

Needs PyTorch and Pillow; a quiet machine for `slowdown`. Prints figures, judges nothing.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import HERE, PACKAGE, found_binary

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE)}


@contextlib.contextmanager
def job(arguments, seconds):
    """A job of job.py, until it trains."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / "job.py"), "--observation", f"{folder}/o.obs.jsonl", "--seconds", str(seconds)]
        process = subprocess.Popen([*command, *arguments.split()], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        while not Path(f"{folder}/o.obs.jsonl").exists() and process.poll() is None:
            time.sleep(0.2)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def watch(a, pid, seconds, *more):
    """A watch for so many seconds: CPU seconds of it, and its resident memory in KB now and then."""
    process = subprocess.Popen([a.stoker, "watch", "--json", "--seconds", str(seconds), *more, str(pid)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    resident = []
    while True:
        done, _, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            process.returncode = 0
            return usage.ru_utime + usage.ru_stime, resident
        with contextlib.suppress(OSError, IndexError, ValueError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            resident.append(int(status.split("VmRSS:")[1].split()[0]))
        time.sleep(0.5)


def workers(a):
    with job("--device --step 0.1 --workers 16 --batch 2 --decode 1", 600) as process:
        cpu, _ = watch(a, process.pid, a.seconds)
    print(f"16 workers, 10 samples a second: {100 * cpu / a.seconds:.2f} % of a core", flush=True)


def processes(a):
    others = [subprocess.Popen(["sleep", "600"]) for _ in range(1000)]
    try:
        with job("--device --step 0.1 --workers 2 --batch 2 --decode 1", 600) as process:
            cpu, _ = watch(a, process.pid, a.seconds)
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()
    print(f"1,000 other processes on the node: {100 * cpu / a.seconds:.2f} % of a core", flush=True)


def slowdown(a):
    """Steps of a job that computes all the time, with and without a watch in turn, within one run of it."""
    rates = {True: [], False: []}
    with job("--step 0.02 --workers 1 --batch 2", 600) as process:
        schedstat = Path(f"/proc/{process.pid}/task/{process.pid}/schedstat")
        for turn in range(2 * a.turns):
            watched = turn % 2 == 0
            seen = subprocess.Popen([a.stoker, "watch", "--json", str(process.pid)], stdout=subprocess.DEVNULL) if watched else None
            time.sleep(0.5)
            before, began = int(schedstat.read_text().split()[0]), time.monotonic()
            time.sleep(a.turn)
            used, passed = int(schedstat.read_text().split()[0]) - before, time.monotonic() - began
            if seen:
                seen.terminate()
                seen.wait()
            rates[watched].append(used / passed / 1e9)
    means = {watched: sum(values) / len(values) for watched, values in rates.items()}
    print(f"CPU time that the watched loop gets, with a watch over without: {means[True] / means[False] - 1:+.2%} "
          f"({a.turns} turns of {a.turn:g} s each)", flush=True)


def memory(a):
    with job("--device --step 0.02 --workers 2 --batch 2 --samples 200", 600) as process:
        _, resident = watch(a, process.pid, a.seconds, "--rate", "100")
    third = len(resident) // 3
    print(f"resident memory at 100 samples a second for {a.seconds:g} s: {resident[third]} KB after a third, "
          f"{resident[-1]} KB at the end", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stoker")
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--turns", type=int, default=6)
    p.add_argument("--turn", type=float, default=4)
    p.add_argument("what", nargs="*", default=["workers", "processes", "slowdown", "memory"])
    a = p.parse_args()
    a.stoker = a.stoker or found_binary()
    for name in a.what:
        {"workers": workers, "processes": processes, "slowdown": slowdown, "memory": memory}[name](a)


if __name__ == "__main__":
    main()
