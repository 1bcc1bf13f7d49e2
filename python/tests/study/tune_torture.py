"""Ends `stoker tune` by SIGKILL at random instants, its trials' runners too, and goes on: the choice is that of the search undisturbed.

    tune_torture.py [--methods greedy,asha,...] [--kills N] [--seed N] [--binary FILE]

N attempts at a kill for each method; one after the end of the search is not counted.
Says what was killed and whether choice and decisions are the same; exit code 1 where they are not.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT = pathlib.Path(__file__).with_name("tuned_script.py")
METHODS = {
    "greedy": ["--batch", "64,128", "--lr", "1e-4..1e-1", "--by", "throughput", "--probe-steps", "20"],
    "asha": ["--lr", "1e-4..1e-1", "--trials", "6", "--min-steps", "30", "--max-steps", "270", "--width", "2"],
    "hyperband": ["--lr", "1e-4..1e-1", "--min-steps", "100", "--max-steps", "300", "--width", "2"],
    "random": ["--lr", "1e-4..1e-1", "--trials", "6", "--width", "2"],
    "grid": ["--lr", "1e-4..1e-1", "--width", "2"],
    "tpe": ["--lr", "1e-4..1e-1", "--trials", "5"],
    "sobol": ["--lr", "1e-4..1e-1", "--trials", "5", "--sampler", "sobol"],
}


class Search:
    def __init__(self, binary: str, method: str, folder: pathlib.Path, store: str) -> None:
        name = "random" if method == "sobol" else method
        # Throughput on a busy machine chooses another batch each time: the greedy search has one.
        batch = [] if method != "greedy" else ["--threshold", "0.01"]
        self.folder = folder
        self.words = [binary, "tune", "--store", store, "--method", name, *METHODS[method], *batch, "--metric", "accuracy", "--quiet",
                      "--json", "--seed", "3", "--", sys.executable, str(SCRIPT), "--lr", "{lr}"]
        if "--batch" in METHODS[method]:
            self.words += ["--batch", "{batch}"]

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(self.words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def finish(self) -> dict:
        done = subprocess.run(self.words, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)


def runners(folder: pathlib.Path) -> list:
    """Processes of `stoker run-trial` for trials of this folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "run-trial" in words and any(word.startswith(str(folder)) for word in words):
            found.append(int(entry.name))
    return found


def told(answer: dict) -> tuple:
    return answer["choice"]["values"], answer["choice"]["score"]


def torture(binary: str, method: str, kills: int, chance: random.Random) -> list:
    """Differences, as sentences; none: the same choice."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        began = time.monotonic()
        whole = Search(binary, method, folder, "whole.db").finish()
        longest = min(time.monotonic() - began, 6) / 2
        search = Search(binary, method, folder, "killed.db")
        killed = {"controller": 0, "runner": 0}
        for _ in range(kills):
            process = search.start()
            time.sleep(chance.uniform(0.02, longest))
            if chance.random() < 0.3:
                for runner in runners(folder)[:1]:
                    os.kill(runner, signal.SIGKILL)
                    killed["runner"] += 1
            process.send_signal(signal.SIGKILL)
            killed["controller"] += process.wait() == -signal.SIGKILL  # a search may have ended before
        found = search.finish()
        print(f"{method}: {killed['controller']} kills of the controller, {killed['runner']} of runners, {found['spent']['trials']} trials "
              f"where undisturbed it takes {whole['spent']['trials']}: {told(found)}", flush=True)
        if not killed["controller"]:
            return [f"{method}: the search had ended before each kill, so that nothing was tried"]
        return [] if told(found) == told(whole) else [f"{method}: {told(found)}, undisturbed {told(whole)}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--kills", type=int, default=30, help="attempts for each method")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", default=os.environ.get("STOKER_BINARY", "stoker"))
    o = parser.parse_args()
    chance = random.Random(o.seed)
    faults = []
    for method in o.methods.split(","):
        faults += torture(o.binary, method, o.kills, chance)
    print("\n".join(faults) or "all the same")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
