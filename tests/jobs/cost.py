#!/usr/bin/env python3
"""What `stoker watch` costs: its own CPU time and memory, and what it takes from the job that it watches.

    tests/jobs/cost.py --stoker build/release/stoker [workers] [processes] [slowdown] [memory]

Needs PyTorch and Pillow; a quiet machine for `slowdown`. Prints figures, judges nothing.
"""

import argparse
import contextlib
import os
import random
import statistics
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


def share_of_a_core(a, pid):
    """What a watch takes as it goes on: the difference of a long one and a short one, without their start and their end."""
    short, _ = watch(a, pid, a.seconds / 4)
    long, _ = watch(a, pid, a.seconds)
    return (long - short) / (0.75 * a.seconds), long / a.seconds


def workers(a):
    with job("--device --step 0.1 --workers 16 --batch 2 --decode 1", 600) as process:
        goes_on, whole = share_of_a_core(a, process.pid)
    print(f"16 workers, 10 samples a second: {goes_on:.2%} of a core; {whole:.2%} with the start and the end of a watch of "
          f"{a.seconds:g} s", flush=True)


def processes(a):
    others = [subprocess.Popen(["sleep", "600"]) for _ in range(1000)]
    try:
        with job("--device --step 0.1 --workers 2 --batch 2 --decode 1", 600) as process:
            goes_on, whole = share_of_a_core(a, process.pid)
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()
    print(f"1,000 other processes on the node: {goes_on:.2%} of a core; {whole:.2%} with the start and the end of a watch of "
          f"{a.seconds:g} s", flush=True)


def slowdown(a):
    """Steps a second of a job that computes a fixed amount in each, with and without a watch in turn, within one run of it.

    Of each pair of turns one is watched, in changing order; the median of the pairs' ratios is what a watch takes.
    """
    ratios = []
    with tempfile.TemporaryDirectory() as folder, job(f"--work 6 --workers 2 --count {folder}/steps", 3600) as process:
        steps = Path(folder) / "steps"
        time.sleep(2)

        def rate(watched):
            seen = None
            if watched:
                seen = subprocess.Popen([a.stoker, "watch", "--json", str(process.pid)], stdout=subprocess.DEVNULL)
            time.sleep(0.5)
            before, began = int.from_bytes(steps.read_bytes(), "little"), time.monotonic()
            time.sleep(a.turn)
            done, passed = int.from_bytes(steps.read_bytes(), "little") - before, time.monotonic() - began
            if seen:
                seen.terminate()
                seen.wait()
            return done / passed

        for turn in range(a.turns):
            first = rate(turn % 2 == 0)
            second = rate(turn % 2 == 1)
            ratios.append(first / second if turn % 2 == 0 else second / first)
    middle = statistics.median(ratios)
    # The median's own error: what it would be of other turns, drawn from these.
    draws = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    low, high = draws[100], draws[-101]
    print(f"steps a second, with a watch over without: {middle - 1:+.2%} [{low - 1:+.2%}, {high - 1:+.2%}] "
          f"(median of {a.turns} pairs of turns of {a.turn:g} s; the band holds 90 % of medians drawn anew)", flush=True)


def memory(a):
    with job("--device --step 0.02 --workers 2 --batch 2 --samples 200", a.seconds + 60) as process:
        _, resident = watch(a, process.pid, a.seconds, "--rate", "100")
    tenth = len(resident) // 10
    print(f"resident memory at 100 samples a second for {a.seconds:g} s, as many samples as {a.seconds / 360:.2g} hours at "
          f"ten a second: {resident[tenth]} KB after a tenth, {resident[len(resident) // 2]} KB half-way, "
          f"{resident[-1]} KB at the end", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stoker")
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--turns", type=int, default=30)
    p.add_argument("--turn", type=float, default=4, help="seconds")
    p.add_argument("what", nargs="*", default=["workers", "processes", "slowdown", "memory"])
    a = p.parse_args()
    a.stoker = a.stoker or found_binary()
    for name in a.what:
        {"workers": workers, "processes": processes, "slowdown": slowdown, "memory": memory}[name](a)


if __name__ == "__main__":
    main()
