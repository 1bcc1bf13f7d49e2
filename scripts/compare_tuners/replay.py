"""The command of a trial of `stoker tune`: tells the recorded curve of a configuration in place of training. Needs only Python.

    replay.py TABLE --batch 64 --optimizer adam --lr 0.003

A trial that was paused goes on from the evaluation that it kept in STOKER_CHECKPOINT_DIR, as a script that trains would.
"""

import argparse
import json
import math
import os


def nearest(rates: list, rate: float) -> int:
    """The recorded rate beside an asked one, on a logarithmic scale."""
    return min(range(len(rates)), key=lambda i: abs(math.log(rates[i] / rate)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--lr", type=float, required=True)
    given = parser.parse_args()
    with open(given.table) as file:
        table = json.load(file)
    key = f"{given.batch}/{given.optimizer}"
    curve = table["held_out"][key][nearest(table["rates"], given.lr)]
    folder = os.environ["STOKER_CHECKPOINT_DIR"]
    os.makedirs(folder, exist_ok=True)
    kept = os.path.join(folder, "evaluation")
    first = int(open(kept).read()) if os.path.exists(kept) else 0
    last = min(int(float(os.environ.get("STOKER_LAST_STEP") or 0)) or len(curve), len(curve))
    steps = max(table["samples"] // given.batch, 1)
    second = given.batch / table["samples_per_s"][key]  # of one step
    lines = []
    for evaluation in range(first, last):
        for step in range(evaluation * steps, (evaluation + 1) * steps):
            # Steps are counted in evaluations, which are alike for all batches.
            lines.append({"monotonic": step * second, "step": (step + 1) / steps, "samples": given.batch})
        value = curve[evaluation]
        lines.append({"monotonic": (evaluation + 1) * steps * second, "step": evaluation + 1,
                      table["metric"]: "nan" if value is None else value})
    with open(kept, "w") as file:
        file.write(str(last))
    with open(os.environ["STOKER_REPORTS"], "a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
