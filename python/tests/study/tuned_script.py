"""A script that tests of `stoker tune` run: planted accuracy, best at a rate of 0.004, with checkpoints it goes on from.

    tuned_script.py --lr LR [--batch N] [--steps N] [--wait SECONDS] [--size BYTES] [--ledger FILE]

A step is an evaluation each ten; the ledger gets a line "begin STEP" and "end STEP" from each start. A checkpoint is as large as --size.
"""

import argparse
import json
import math
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import stoker


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--wait", type=float, default=0.001)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--ledger", default="")
    return parser.parse_args()


def save(path: pathlib.Path, step: int, size: int) -> None:
    """By rename, so that what is found is whole."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"step": step, "weights": "x" * size}))
    draft.replace(path)


def main() -> None:
    o = options()
    folder = stoker.checkpoint_dir()
    kept = folder / "last.json" if folder else None
    first = json.loads(kept.read_text())["step"] + 1 if kept and kept.exists() else 1
    say = (lambda text: open(o.ledger, "a").write(text + "\n")) if o.ledger else (lambda text: None)
    say(f"begin {first}")
    best = 0.9 - 0.1 * math.log10(o.lr / 0.004) ** 2
    step = first - 1
    for step in range(first, o.steps + 1):
        time.sleep(o.wait)
        metrics = {"accuracy": best * (1 - math.exp(-step / 60))} if step % 10 == 0 else {}
        enough = stoker.report(step=step, samples=o.batch, loss=1 / step, **metrics)
        if kept and (enough or step % 50 == 0):
            save(kept, step, o.size)
        if enough:
            break
    say(f"end {step}")


if __name__ == "__main__":
    main()
