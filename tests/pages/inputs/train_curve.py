"""A trial without any library: its loss falls to a floor that its settings decide, and it reports on the way."""

import argparse
import json
import math
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()


def report(**values):
    path = os.environ.get("STOKER_REPORTS")
    if path:
        with open(path, "a", encoding="utf-8") as reports:
            reports.write(json.dumps({"monotonic": time.monotonic(), **values}) + "\n")


floor = 0.3 + 0.4 * abs(math.log10(arguments.lr) + 2) + 0.02 * math.log2(arguments.batch) + 0.003 * arguments.seed
for step in range(1, arguments.steps + 1):
    time.sleep(0.002 + 0.00005 * arguments.batch)
    loss = floor + 2 * math.exp(-step / 6)
    report(step=step, loss=loss, accuracy=1 / (1 + loss), samples=arguments.batch)
