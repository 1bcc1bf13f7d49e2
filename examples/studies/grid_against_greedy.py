"""The whole grid of batch and learning rate beside `stoker tune`, both from the same trials of two recurrent networks.

    python grid_against_greedy.py record --source train.en.gz --target train.fr.gz    # trains each cell of the grid once, to its end
    python grid_against_greedy.py table                                               # both methods over what was recorded

`record` writes a line for each evaluation: samples seen, CPU seconds, accuracy. `table` gives `stoker tune` a command that, in place of
training, tells what was recorded, with the recorded CPU seconds as its clock; a learning rate that the grid has not is trained then, and
recorded, which needs the text. Time is CPU time of one thread, so that it says little of what else the machine does.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tuning"))
BATCHES, RATES = (32, 64, 128, 256), ("1e-4", "1e-3", "1e-2", "1e-1")
MODELS = ("brnn", "encdec")
FIELDS = ("model", "seed", "batch", "lr", "samples", "train_s", "cpu_s", "accuracy")
PATIENCE = 3  # of both methods
RECORD = HERE.parents[1] / "data" / "measured" / "tuning" / "rnn-translation.csv"
PROBE = 640  # samples that measure a batch: a pass over the data
SIZE = {"--epochs": 8, "--sentences": 800, "--words": 500, "--length": 10}


class Record:
    """Recorded trials, in a file that grows: (model, seed, batch, rate) -> lines."""

    def __init__(self, path: pathlib.Path):
        self.path, self.trials = path, {}
        self.read()

    def read(self) -> None:
        self.trials = {}
        if self.path.exists():
            with open(self.path, newline="") as file:
                for row in csv.DictReader(file):
                    self.trials.setdefault(self.key(**row), []).append(row)

    @staticmethod
    def key(model, seed, batch, lr, **_):
        return model, int(seed), int(batch), f"{float(lr):.6g}"

    def add(self, rows: list) -> None:
        is_new = not self.path.exists()
        with open(self.path, "a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerows(rows)
        self.trials[self.key(**rows[0])] = rows


class Trainer:
    """Trains a cell for real, as examples/tuning/translate.py does."""

    def __init__(self, source: str, target: str):
        import torch
        import translate

        torch.set_num_threads(1)
        self.translate, self.words = translate, ["--source", source, "--target", target]
        size = [str(part) for pair in SIZE.items() for part in pair]
        self.words += size
        a = translate.settings(self.words)
        self.source, self.target = (translate.read(path, a.sentences, a.length, a.words) for path in (source, target))
        self.rows("brnn", 0, BATCHES[0], "1e-3", "--epochs", "1")  # the first steps of a process are several times slower

    def rows(self, model, seed, batch, lr, *others) -> list:
        asked = ["--model", model, "--seed", str(seed), "--batch", str(batch), "--lr", str(lr)]
        a = self.translate.settings([*self.words, *asked, *others])
        found, began, at, train = [], time.process_time(), time.process_time(), 0.0

        def report(step, accuracy=None, **_):
            nonlocal at, train
            now = time.process_time()
            if accuracy is None:
                train += now - at
            else:
                found.append({"model": model, "seed": seed, "batch": batch, "lr": f"{float(lr):.6g}", "samples": step,
                              "train_s": f"{train:.3f}", "cpu_s": f"{now - began:.3f}", "accuracy": f"{float(accuracy):.4f}"})
            at = now
            best = max(range(len(found)), key=lambda i: float(found[i]["accuracy"]), default=0)
            return len(found) - 1 - best >= PATIENCE  # both methods end it here

        self.translate.train(a, self.source, self.target, report)
        return found


def record(given) -> None:
    store, trainer = Record(given.record), None
    for seed in given.seeds:
        for model in given.models:
            for batch in BATCHES:
                for lr in RATES:
                    if store.key(model, seed, batch, lr) not in store.trials:
                        trainer = trainer or Trainer(given.source, given.target)
                        store.add(trainer.rows(model, seed, batch, lr))


def replay(given) -> None:
    """The command of a trial: tells what was recorded of one cell, and trains it first where nothing was."""
    store = Record(given.record)
    key = store.key(given.model, given.seed, given.batch, given.lr)
    if key not in store.trials:
        if not given.source:
            sys.exit(f"{key} was not recorded, and without --source and --target nothing can be trained")
        store.add(Trainer(given.source, given.target).rows(given.model, given.seed, given.batch, given.lr))
    lines, before = [], 0
    for row in store.trials[key]:
        seen, train = int(row["samples"]), float(row["train_s"])
        while before < seen:  # the steps of this epoch; a batch's rate is that of the whole
            samples = min(given.batch, seen - before)
            before += samples
            lines.append({"monotonic": train * before / seen, "step": before, "samples": samples})
        lines.append({"monotonic": train, "step": seen, "accuracy": float(row["accuracy"])})
    with open(os.environ["STOKER_REPORTS"], "a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def greedy(given, store: Record, model: str, seed: int) -> dict:
    """Runs `stoker tune` over the record: what it chose, and CPU seconds up to where each of its trials stopped."""
    text = ["--source", given.source, "--target", given.target] if given.source else []
    command = [sys.executable, str(HERE / "grid_against_greedy.py"), "replay", "--record", str(given.record.resolve()), "--model", model,
               "--seed", str(seed), *text, "--batch", "{batch}", "--lr", "{lr}"]
    words = ["stoker", "tune", "--store", "tune.db", "--quiet", "--json", "--batch", ",".join(map(str, BATCHES)), "--lr", "1e-4..1e-1",
             "--metric", "accuracy", "--patience", str(PATIENCE), "--probe-steps", str(PROBE), "--at-most", "1", "--", *command]
    words[0] = os.environ.get("STOKER_BINARY", "stoker")
    with tempfile.TemporaryDirectory() as folder:
        told = json.loads(subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout)
        shown = subprocess.run([words[0], "study", "tune.db", "--json"], cwd=folder, check=True, capture_output=True, text=True).stdout
    store.read()
    stopped = {int(trial): float(step) for decision in told["decisions"]
               for trial, step in re.findall(r"trial (\d+) \S+ at step ([0-9.]+)", decision["why"])}
    spent, trained = 0.0, 0
    for trial in json.loads(shown)["trials"]:
        values = trial["values"]
        rows = store.trials[store.key(model, seed, values["batch"], values["lr"])]
        if values["stage"] == "batch":  # ended when its throughput is known: no evaluation
            steps = max(PROBE, 10 * int(values["batch"]))
            spent += float(rows[-1]["train_s"]) * min(steps / int(rows[-1]["samples"]), 1)
            continue
        trained += 1
        spent += max(float(row["cpu_s"]) for row in rows if int(row["samples"]) <= stopped.get(trial["trial"], math.inf))
    choice = told["choice"]
    chosen = choice["values"]
    return {"accuracy": choice["score"], "cpu_s": spent, "trials": trained, "batch": chosen["batch"], "lr": chosen["lr"],
            "decisions": told["decisions"]}


def grid(store: Record, model: str, seed: int) -> dict:
    cells = [store.trials[store.key(model, seed, batch, lr)] for batch in BATCHES for lr in RATES]
    best = max((row for rows in cells for row in rows), key=lambda row: float(row["accuracy"]))
    return {"accuracy": float(best["accuracy"]), "cpu_s": sum(float(rows[-1]["cpu_s"]) for rows in cells), "trials": len(cells),
            "batch": best["batch"], "lr": best["lr"]}


def table(given) -> None:
    store = Record(given.record)
    print("| network | seed | grid: accuracy | CPU time | batch, rate | greedy: accuracy | CPU time | batch, rate |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in given.models:
        pairs = []
        for seed in given.seeds:
            whole, found = grid(store, model, seed), greedy(given, store, model, seed)
            pairs.append((whole, found))
            cells = [f"{one['accuracy']:.3f} | {one['cpu_s']:.1f} s, {one['trials']} trials | {one['batch']}, {one['lr']}"
                     for one in (whole, found)]
            print(f"| {model} | {seed} | {' | '.join(cells)} |", flush=True)
            if given.decisions:
                for decision in found["decisions"]:
                    print(f"    {decision['what']}: {decision['why']}", file=sys.stderr)
        lost = [found["accuracy"] - whole["accuracy"] for whole, found in pairs]
        time_of = [sum(pair[i]["cpu_s"] for pair in pairs) for i in (0, 1)]
        print(f"\n{model}: greedy has {statistics.mean(lost):+.4f} accuracy ({min(lost):+.4f} to {max(lost):+.4f}) for "
              f"{100 * time_of[1] / time_of[0]:.0f} % of the grid's CPU time\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("record", "replay", "table"))
    parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--source", default="")
    parser.add_argument("--target", default="")
    parser.add_argument("--model", default="brnn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", default="1e-3")
    parser.add_argument("--decisions", action="store_true", help="of table: print those of the greedy method, too")
    given = parser.parse_args()
    globals()[given.what](given)


if __name__ == "__main__":
    main()
