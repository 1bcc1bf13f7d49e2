#!/usr/bin/env python3
"""Runs jobs with planted faults under `stoker watch` and says whether the planted cause is named first.

    tests/jobs/run.py --stoker build/release/stoker [--runs 3] [--only PART ...] [--cures] [--out table.md]

Needs PyTorch and Pillow. Faults that need root (a CPU quota, a slow disk, a small /dev/shm) are skipped aloud without.
Nothing here asserts on time: what is compared is the cause that is named, and shares.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import CASES, GPU_CASES

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python"
GROUP = "stoker-jobs"


@contextlib.contextmanager
def group_of(controller, settings):
    """A control group of version 1 with these settings; yields what puts a process into it."""
    folder = Path("/sys/fs/cgroup") / controller / f"{GROUP}-{os.getpid()}"
    folder.mkdir()
    try:
        for name, value in settings.items():
            (folder / name).write_text(value)
        yield f"echo $$ > {folder}/cgroup.procs; "
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def disk_number(folder):
    """Major and minor number of the disk that holds a folder."""
    device = os.stat(folder).st_dev
    return f"{os.major(device)}:{os.minor(device)}"


@contextlib.contextmanager
def surroundings(around, folder):
    """Sets up what a case asks for; yields shell text that goes before the command."""
    with contextlib.ExitStack() as stack:
        before = ""
        if "quota" in around:
            quota = str(int(around["quota"] * 100_000))
            before += stack.enter_context(group_of("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": quota}))
        if "disk" in around:
            limit = f"{disk_number(folder)} {around['disk']}"
            before += stack.enter_context(group_of("blkio", {"blkio.throttle.read_bps_device": limit}))
        if "shm" in around:
            before += f"mount -t tmpfs -o size={around['shm']}m tmpfs /dev/shm; "
        for _ in range(around.get("burners", 0)):
            burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(burner.wait)
            stack.callback(burner.kill)
        if around.get("gpu_burner"):
            burner = subprocess.Popen([sys.executable, str(HERE / "gpu_job.py"), "--burner"],
                                      env={**os.environ, "PYTHONPATH": str(PACKAGE)})
            stack.callback(burner.wait)
            stack.callback(burner.kill)
        yield before


def report_in(text):
    """The report among the JSON lines of a watch; None: there is none."""
    lines = [line for line in text.splitlines() if '"kind":"report"' in line]
    return json.loads(lines[-1]) if lines else None


def told_by_loop(observation):
    told = subprocess.run([sys.executable, "-m", "stoker", "observation", "--json", str(observation)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    return json.loads(told.stdout) if told.returncode == 0 else {}


def kept(a, case, number):
    """Where a run's recording and observation are kept."""
    stem = re.sub(r"[^a-z0-9]+", "-", case.name.lower()).strip("-")
    return Path(a.keep or a.replay) / f"{stem}.{number}.rec", Path(a.keep or a.replay) / f"{stem}.{number}.obs.jsonl"


def replay_job(a, case, number):
    """The report that the binary of today makes of a kept recording."""
    recording, observation = kept(a, case, number)
    if not recording.exists():
        raise RuntimeError("not kept")
    done = subprocess.run([a.stoker, "explain", "--json", str(recording)], capture_output=True, text=True, check=False)
    report = report_in(done.stdout)
    if report is None:
        raise RuntimeError(f"no report: {done.stderr[-400:]}")
    return report, told_by_loop(observation)


def run_job(a, case, arguments, seconds, number=None):
    """The report of one run, and what the loop itself says of its waiting."""
    with tempfile.TemporaryDirectory(dir=a.folder) as folder, surroundings(case.around, folder) as before:
        observation = Path(folder) / "job.obs.jsonl"
        recording = Path(folder) / "job.rec"
        if a.keep and number is not None:
            recording, observation = kept(a, case, number)
            recording.unlink(missing_ok=True)
            observation.unlink(missing_ok=True)
        job = f"exec {sys.executable} {HERE}/{case.script} --observation {observation} --seconds {seconds} {arguments}"
        shell = ["unshare", "-m", "bash", "-c"] if "shm" in case.around else ["bash", "-c"]
        command = [a.stoker, "watch", "--json", "-o", str(recording), "--"] + shell + [before + job]
        nice = ["nice", "-n", str(a.nice)] if a.nice and "burners" not in case.around else []
        done = subprocess.run(nice + command, capture_output=True, text=True, check=False, timeout=600,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        report = report_in(done.stdout)
        if report is None:
            raise RuntimeError(f"{case.name}: no report: {done.stderr[-400:]}")
        return report, told_by_loop(observation)


def wait_share(observation):
    """Share of waiting that stoker.Observer saw, in per cent; None: unknown."""
    for phase in observation.get("phases", []):
        if phase["name"] == "wait":
            return 100 * phase["share"]
    return None


def found_binary():
    for path in sorted(PACKAGE.parent.glob("build/*/stoker")):
        return str(path)
    sys.exit("run.py: there is no build/*/stoker; name the binary with --stoker")


def needs_root(case):
    return any(key in case.around for key in ("quota", "disk", "shm"))


def cure_of(setting):
    """Arguments of the jobs that a finding's setting stands for."""
    name, _, value = setting.partition("=")
    flags = {"num_workers": f"--workers {value}", "prefetch_factor": f"--prefetch {value}",
             "persistent_workers": "--persistent", "in_order": "--out-of-order"}
    return flags.get(name, "")


def rate_of(report):
    """Steps a second: the loop's own word where it tells."""
    told = report["told"]
    return 1000 / told["step_ms"] if told else report["batches_per_s"] or 0.0


def one(a, case, number):
    if a.replay:
        report, observation = replay_job(a, case, number)
    else:
        report, observation = run_job(a, case, case.arguments, a.seconds, number)
    if a.shared and "burners" not in case.around:
        report["findings"] = [f for f in report["findings"] if f["name"] != "other_jobs_on_the_cores"]
    first = report["findings"][0]["name"] if report["findings"] else ""
    right = first in case.expected if case.expected else not report["findings"]
    row = {"case": case.name, "right": right, "first": first or "healthy", "lost": 0, "setting": "", "gain": None,
           "waits": 100 * report["waits_seen"], "loop": wait_share(observation), "rate": rate_of(report)}
    if report["findings"]:
        row.update(lost=100 * report["findings"][0]["lost_share"], setting=report["findings"][0]["setting"],
                   gain=report["findings"][0]["gain"])
    cure = cure_of(row["setting"])
    if a.cures and right and cure and row["gain"]:
        # argparse takes the last of several, so that the cure stands behind what it replaces.
        cured, _ = run_job(a, case, case.arguments + " " + cure, a.seconds)
        row["cured"] = rate_of(cured) / rate_of(report) - 1
    return row


def text_of(row):
    gain = row["gain"]
    band = f"{100 * gain['value']:+.0f} [{100 * gain['low']:.0f}, {100 * gain['high']:.0f}]" if gain else ""
    loop = f"{row['loop']:.0f}" if row["loop"] is not None else ""
    cured = f"{100 * row['cured']:+.0f}" if "cured" in row else ""
    return (f"| {row['case']} | {row['first']} | {'yes' if row['right'] else '**no**'} | {row['waits']:.0f} | {loop} | "
            f"{row['setting']} | {band} | {cured} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stoker", help="default: build/*/stoker")
    p.add_argument("--gpu", action="store_true", help="the jobs for a CUDA GPU instead")
    p.add_argument("--budget", type=float, default=0, metavar="S", help="begin no job that would end after so many seconds")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--cures", action="store_true", help="run the cured job too")
    p.add_argument("--shared", action="store_true",
                   help="others work on this machine too: set the finding that says so aside")
    p.add_argument("--nice", type=int, default=0, help="priority of the job and its watch, on a shared machine")
    p.add_argument("--folder", default=tempfile.gettempdir())
    p.add_argument("--keep", help="keep recordings and observations in this folder")
    p.add_argument("--missing", action="store_true", help="run only what is not kept yet")
    p.add_argument("--replay", help="judge the recordings of this folder anew instead of running jobs")
    p.add_argument("--first", type=int, default=1, help="number of the first run, in the names of what is kept")
    p.add_argument("--out", help="also write the table here")
    a = p.parse_args()
    end = time.monotonic() + a.budget - a.seconds if a.budget else float("inf")
    a.stoker = a.stoker or found_binary()
    if a.keep:
        Path(a.keep).mkdir(parents=True, exist_ok=True)
    rows = []
    head = ("| planted | named first | right | waits, seen, % | the loop says | setting | gain, % | cured, % |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |")
    print(head, flush=True)
    for case in GPU_CASES if a.gpu else CASES:
        if time.monotonic() > end:
            print(f"| {case.name} | skipped: no time | | | | | | |", flush=True)
            continue
        if a.only and not any(part in case.name for part in a.only):
            continue
        if needs_root(case) and os.geteuid() != 0 and not a.replay:
            print(f"| {case.name} | skipped: needs root | | | | | | |", flush=True)
            continue
        for number in range(a.first, a.first + a.runs):
            if a.keep and a.missing and kept(a, case, number)[0].exists():
                continue
            try:
                row = one(a, case, number)
            except (RuntimeError, OSError) as error:
                print(f"| {case.name} | skipped: {error} | | | | | | |", flush=True)
                continue
            rows.append(row)
            print(text_of(row), flush=True)
    right = sum(row["right"] for row in rows)
    print(f"\n{right} of {len(rows)} right")
    if a.out:
        Path(a.out).write_text(head + "\n" + "\n".join(text_of(row) for row in rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
