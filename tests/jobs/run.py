#!/usr/bin/env python3
"""Runs jobs with planted faults under `stoker watch` and says whether the planted cause is named first.

    tests/jobs/run.py --stoker build/release/stoker --keep DIR [--runs 3] [--only PART ...] [--results FILE]
    tests/jobs/run.py --stoker build/release/stoker --keep DIR --cures [--results FILE]    # the jobs with their first cure
    tests/jobs/run.py --stoker build/release/stoker --replay DIR [--cures] --results FILE  # today's rules, kept recordings

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

import results
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


def of_first_rank(observation):
    """Several ranks write a file each, with their number before the ending."""
    ranked = observation.with_name(observation.name.replace(".obs.jsonl", ".rank0.obs.jsonl"))
    return ranked if ranked.exists() else observation


def told_by_loop(observation):
    """What each rank's loop says; a job without ranks has one."""
    ranked = sorted(observation.parent.glob(observation.name.replace(".obs.jsonl", ".rank*.obs.jsonl")))
    said = []
    for file in ranked or [observation]:
        told = subprocess.run([sys.executable, "-m", "stoker", "observation", "--json", str(file)],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        if told.returncode == 0:
            said.append(json.loads(told.stdout))
    return said


def kept(a, case, number, cured=False):
    """Where a run's recording and observation are kept."""
    stem = re.sub(r"[^a-z0-9]+", "-", case.name.lower()).strip("-") + f".{number}" + (".cured" if cured else "")
    folder = Path(a.keep or a.replay)
    return folder / f"{stem}.rec", folder / f"{stem}.obs.jsonl"


def replay_job(a, recording, observation):
    """The report that the binary of today makes of a kept recording, what its loop told, and its rate."""
    if not recording.exists():
        raise RuntimeError("not kept")
    done = subprocess.run([a.stoker, "explain", "--json", str(recording)], capture_output=True, text=True, check=False)
    report = report_in(done.stdout)
    if report is None:
        raise RuntimeError(f"no report: {done.stderr[-400:]}")
    return report, told_by_loop(observation), steady_rate(of_first_rank(observation))


def run_job(a, case, arguments, recording=None, observation=None):
    """The report of one run, what the loop itself says of its waiting, and its steps a second."""
    with tempfile.TemporaryDirectory(dir=a.folder) as folder, surroundings(case.around, folder) as before:
        recording = recording or Path(folder) / "job.rec"
        observation = observation or Path(folder) / "job.obs.jsonl"
        recording.unlink(missing_ok=True)
        observation.unlink(missing_ok=True)
        job = f"exec {sys.executable} {HERE}/{case.script} --observation {observation} --seconds {a.seconds} {arguments}"
        shell = ["unshare", "-m", "bash", "-c"] if "shm" in case.around else ["bash", "-c"]
        command = [a.stoker, "watch", "--json", "-o", str(recording), "--"] + shell + [before + job]
        nice = ["nice", "-n", str(a.nice)] if a.nice and "burners" not in case.around else []
        done = subprocess.run(nice + command, capture_output=True, text=True, check=False, timeout=600,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        report = report_in(done.stdout)
        if report is None:
            raise RuntimeError(f"{case.name}: no report: {done.stderr[-400:]}")
        return report, told_by_loop(observation), steady_rate(of_first_rank(observation))


def wait_share(told):
    """Share of waiting that stoker.Observer saw, in per cent, the mean of the ranks; None: unknown."""
    shares = [100 * phase["share"] for said in told for phase in said.get("phases", []) if phase["name"] == "wait"]
    return sum(shares) / len(shares) if shares else None


def found_binary():
    for path in sorted(PACKAGE.parent.glob("build/*/stoker")):
        return str(path)
    sys.exit("run.py: there is no build/*/stoker; name the binary with --stoker")


def needs_root(case):
    return any(key in case.around for key in ("quota", "disk", "shm"))


def cure_of(case, row):
    """Arguments that carry out the first finding's cure; empty: it has none that can be tried."""
    name, _, value = row["setting"].partition("=")
    flags = {"num_workers": f"--workers {value}", "prefetch_factor": f"--prefetch {value}",
             "persistent_workers": "--persistent", "in_order": "--out-of-order"}
    return flags.get(name, "") or case.cure


def steady_rate(observation):
    """Training steps a second of the later two thirds of a run, by the loop's own record; None: too few."""
    if not observation.exists():
        return None
    rows = [json.loads(line) for line in observation.read_text().splitlines() if line.startswith("[")]
    starts = [row[4] / 1e9 for row in rows if row[2] == "train"]
    later = [at for at in starts if at > starts[0] + (starts[-1] - starts[0]) / 3]
    return (len(later) - 1) / (later[-1] - later[0]) if len(later) > 8 else None


def rhythm_in(report):
    """Seconds of what repeats in the first rank's main thread: value, low, high; None: nothing steady."""
    rhythm = report["ranks"][0].get("rhythm") if report["ranks"] else None
    return [round(rhythm[key], 4) for key in ("period_s", "low_s", "high_s")] if rhythm else None


def own_loading_in(report):
    """Per cent of the time that a job without workers loads, by whose code it runs: value, low, high."""
    own = report.get("own_loading")
    return [round(100 * own[key], 1) for key in ("value", "low", "high")] if own and own["by_code"] else None


def judged(a, case, report, told, rate):
    """What a run is compared by."""
    if a.shared and "burners" not in case.around:
        report["findings"] = [f for f in report["findings"] if f["name"] != "other_jobs_on_the_cores"]
    first = report["findings"][0]["name"] if report["findings"] else ""
    right = first in case.expected if case.expected else not report["findings"]
    row = {"right": right, "first": first or "healthy", "lost": 0, "setting": "", "gain": None,
           "waits": 100 * report["waits_seen"], "loop": wait_share(told), "rate": rate or report["batches_per_s"] or 0.0,
           "batches": report["batches_per_s"] if report["told"] else None, "rhythm": rhythm_in(report),
           "own": own_loading_in(report)}
    if report["findings"]:
        finding = report["findings"][0]
        gain = finding["gain"]
        row.update(lost=100 * finding["lost_share"], setting=finding["setting"],
                   gain=[round(100 * gain[key], 2) for key in ("value", "low", "high")] if gain else None)
    return {key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()}


def one(a, case, number):
    files = kept(a, case, number) if a.keep or a.replay else (None, None)
    return judged(a, case, *(replay_job(a, *files) if a.replay else run_job(a, case, case.arguments, *files)))


def cured(a, case, number):
    """The speed of a kept run's job with that run's first cure, beside what was promised; None: nothing to try."""
    before = judged(a, case, *replay_job(a, *kept(a, case, number)))
    cure = cure_of(case, before)
    if not before["right"] or not cure or not before["gain"] or not before["rate"]:
        return None
    files = kept(a, case, number, cured=True)
    note = files[0].with_suffix(".cure")
    # What was run is what an earlier state of the rules named; it may be another cure than today's.
    known = note.exists() and note.read_text() == cure
    if a.replay and not known:
        return None
    if a.replay or (a.missing and known):
        report, _, rate = replay_job(a, *files)
    else:
        # argparse takes the last of several, so that the cure stands behind what it replaces.
        report, _, rate = run_job(a, case, case.arguments + " " + cure, *files)
        note.write_text(cure)
    gain = 100 * ((rate or report["batches_per_s"]) / before["rate"] - 1)
    return {"cure": cure, "promised": [round(value, 2) for value in before["gain"]], "gain": round(gain, 2),
            "held": before["gain"][1] <= gain <= before["gain"][2]}


HEAD = ("| planted | named first | right | waits, seen, % | the loop says | setting | gain, % |\n"
        "| --- | --- | --- | --- | --- | --- | --- |")
CURED_HEAD = "| planted | cure | promised, % | measured, % | held |\n| --- | --- | --- | --- | --- |"


def band_text(gain):
    return f"{gain[0]:+.0f} [{gain[1]:.0f}, {gain[2]:.0f}]" if gain else ""


def text_of(case, row):
    loop = f"{row['loop']:.0f}" if row["loop"] is not None else ""
    return (f"| {case.name} | {row['first']} | {'yes' if row['right'] else '**no**'} | {row['waits']:.0f} | {loop} | "
            f"{row['setting']} | {band_text(row['gain'])} |")


def cured_text(case, row):
    held = "yes" if row["held"] else "**no**"
    return f"| {case.name} | {row['cure']} | {band_text(row['promised'])} | {row['gain']:+.0f} | {held} |"


def chosen(a):
    """The cases that are to be run here, with those that cannot be said aloud."""
    for case in GPU_CASES if a.gpu else CASES:
        if a.only and not any(part in case.name for part in a.only):
            continue
        if needs_root(case) and os.geteuid() != 0 and not a.replay:
            print(f"| {case.name} | skipped: needs root |", flush=True)
            continue
        yield case


def note(path, here, case, kind, number, row):
    """Merges one row into the results at once: rival.py may write to them meanwhile, and a long run may be ended."""
    merged = results.load(path)
    if here:
        merged["machine"] = here
    results.put(merged, case, kind, number, row)
    results.save(path, merged)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stoker", help="default: build/*/stoker")
    p.add_argument("--gpu", action="store_true", help="the jobs for a CUDA GPU instead")
    p.add_argument("--budget", type=float, default=0, metavar="S", help="begin no job that would end after so many seconds")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--cures", action="store_true", help="run jobs that are kept again, with their first cure")
    p.add_argument("--shared", action="store_true",
                   help="others work on this machine too: set the finding that says so aside")
    p.add_argument("--nice", type=int, default=0, help="priority of the job and its watch, on a shared machine")
    p.add_argument("--folder", default=tempfile.gettempdir())
    p.add_argument("--keep", help="keep recordings and observations in this folder")
    p.add_argument("--missing", action="store_true", help="run only what is not kept yet")
    p.add_argument("--replay", help="judge the recordings of this folder anew instead of running jobs")
    p.add_argument("--first", type=int, default=1, help="number of the first run, in the names of what is kept")
    p.add_argument("--out", help="also write the table here")
    p.add_argument("--results", help="merge what was measured into this file (data/measured/watch/jobs.json)")
    a = p.parse_args()
    if a.cures and not (a.keep or a.replay):
        p.error("--cures compares with the runs in the folder of --keep or --replay")
    end = time.monotonic() + a.budget - a.seconds if a.budget else float("inf")
    a.stoker = a.stoker or found_binary()
    if a.keep:
        Path(a.keep).mkdir(parents=True, exist_ok=True)
    here = results.machine(a.stoker) if a.results and not a.replay else None
    kind, right_key, run, text = (("cures", "held", cured, cured_text) if a.cures else ("runs", "right", one, text_of))
    rows, lines = [], [CURED_HEAD if a.cures else HEAD]
    print(lines[0], flush=True)
    for case in chosen(a):
        for number in range(a.first, a.first + a.runs):
            if a.keep and a.missing and not a.cures and kept(a, case, number)[0].exists():
                continue
            if time.monotonic() > end:
                print(f"| {case.name} | skipped: no time |", flush=True)
                continue
            try:
                row = run(a, case, number)
            except (RuntimeError, OSError) as error:
                print(f"| {case.name} | skipped: {error} |", flush=True)
                continue
            if row is None:
                continue
            rows.append(row)
            lines.append(text(case, row))
            print(lines[-1], flush=True)
            if a.results:
                note(a.results, here, case, kind, number, row)
    print(f"\n{sum(row[right_key] for row in rows)} of {len(rows)} {'bands held' if a.cures else 'right'}")
    if a.out:
        Path(a.out).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
