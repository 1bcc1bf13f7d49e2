"""What all parts of the fit share: tables, the tools that hold the cost rules, a minimiser, errors.

The cost rules are not repeated here: every prediction comes from timing_rows and timing_steps (tools).
"""
import array
import csv
import gzip
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile


def chips():
    """The chip of each GPU of the catalogue."""
    return {r["gpu"]: r["chip"] for r in read_csv(os.path.join(os.path.dirname(__file__), "../../data/gpus/gpus.csv"))}


class Context:
    """One fit: where the rows are, what computes costs, and which rows it may not see.

    `without_gpu`: rows of that GPU (and of boards with the same chip) are left out. `sees` is what a part asks
    before it uses a row. `without_models`: 0 or 1, the half of the models (by hash) whose steps are left out.
    `quick`: fewer rows and trees where that saves much time (folds).
    """

    def __init__(self, data, tools, steps="", without_gpu=None, without_models=None, quick=False):
        self.data, self.tools, self.steps, self.without_gpu = data, tools, steps, without_gpu
        self.without_models, self.quick = without_models, quick
        self.chips = chips()

    def sees(self, gpu):
        return self.without_gpu is None or self.chips.get(gpu, gpu) != self.chips.get(self.without_gpu, self.without_gpu)


def header(provenance, errors):
    return {"format": "stoker-timing-coefficients", "schema_version": [1, 0],
            "provenance": {**provenance, "made_by": "scripts/fit-timing"}, "measured_error": errors}


def write_tree(path, tree):
    with open(path, "w") as out:
        json.dump(tree, out, indent=1)
        out.write("\n")


def read_csv(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", newline="") as file:
        yield from csv.DictReader(file)


class Tool:
    """A running timing_rows or timing_steps: patches in, times out."""

    def __init__(self, binary, lines, coefficients):
        with tempfile.NamedTemporaryFile("w", suffix=".rows", delete=False) as file:
            file.write("".join(line + "\n" for line in lines))
        self.count, self.path = len(lines), file.name
        self.process = subprocess.Popen([binary, file.name, "--coefficients", coefficients],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, patch, words=""):
        line = " ".join([words] + [f"{name}={value:.9g}" for name, value in patch.items()])
        self.process.stdin.write((line + "\n").encode())
        self.process.stdin.flush()

    def doubles(self, count):
        out = array.array("d")
        out.frombytes(self.process.stdout.read(8 * count))
        if len(out) != count:
            sys.exit("fit-timing: the tool stopped; its message stands above")
        return out

    def __call__(self, patch, words="", values=1):
        self.send(patch, words)
        return self.doubles(self.count * values)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        os.unlink(self.path)


def most(name):
    """No kernel beats the data sheet, but for Winograd's staging, which the cache serves in part, and a multiple that is no
    share. Times, energies, speeds and exponents have no such end."""
    if not name.endswith((".compute", ".memory")):
        return math.inf
    return 10.0 if name in ("depthwise_weight.compute", "winograd.memory") else 1.0


def descend(loss, start, step=0.3, least=0.02):
    """Coordinate descent on the logarithms of positive parameters; steps halve where neither way helps."""
    best, value = dict(start), loss(start)
    steps = {name: step for name in start}
    while max(steps.values()) >= least:
        for name in start:
            if steps[name] < least:
                continue
            for direction in (1, -1):
                trial = dict(best)
                trial[name] = min(most(name), best[name] * math.exp(direction * steps[name]))
                trial_value = loss(trial)
                if trial_value < value - 1e-6:
                    best, value = trial, trial_value
                    break
            else:
                steps[name] /= 2
    return best


def log_error(predicted, measured):
    return sum(abs(math.log(p / t)) for p, t in zip(predicted, measured)) / len(measured)


def errors(predicted, measured):
    relative = sorted(abs(p / t - 1) for p, t in zip(predicted, measured))
    return {"rows": len(relative), "mape": round(100 * sum(relative) / len(relative), 1),
            "mdape": round(100 * statistics.median(relative), 1),
            "p90": round(100 * relative[int(0.9 * (len(relative) - 1))], 1)}


def coverage(predicted, bands, measured):
    """Share of rows inside the 90 % band, and its mean width over the prediction, in percent."""
    inside = [p * (1 - bands[2 * i]) <= t <= p * (1 + bands[2 * i + 1])
              for i, (p, t) in enumerate(zip(predicted, measured))]
    width = sum(bands[2 * i] + bands[2 * i + 1] for i in range(len(measured))) / len(measured)
    return {"coverage": round(100 * sum(inside) / len(inside)), "width": round(100 * width)}


def rounded(patch):
    return {name: float(f"{value:.3g}") for name, value in patch.items()}


def nested(patch):
    tree = {"classes": {}}
    for name, value in sorted(rounded(patch).items()):
        group, key = name.split(".")
        target = tree if group in ("kernel", "host", "spread", "power", "pcie", "collective", "band") else tree["classes"]
        target.setdefault(group, {})[key] = value
    return tree
