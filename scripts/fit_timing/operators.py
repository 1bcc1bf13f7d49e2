"""Efficiencies of single operators in FP32, by GPU, from NeuSight's rows -> operators.json.

They serve GPUs without learned times (residual.py), and those that have them when the trees are damaged.
"""
import collections
import hashlib
import math
import os
import random
import statistics
import tempfile

from .common import Tool, descend, errors, header, nested, write_tree
from .operator_rows import CHIPS, FAMILIES, GAP, HOST_FLOOR_US, OPERATOR_FLOOR, offset_span, with_offset

ROWS_PER_FIT = 4000
FINEST = 0.004  # the last step of the search, in logarithms: coarser ones leave efficiencies to the rows that were drawn
# The pull of each logarithm towards its start, without which rows of convolutions cannot tell Winograd's arithmetic from its
# staging (1.4 to 3.5 times the memory's bandwidth). Chosen by GPUs left out, among 0, 0.003, 0.01 and this.
PULL = 0.03
HELD_OUT_PERCENT = 15  # of the shapes, by hash
# Power-capped cards and another vendor: fitted for themselves, kept out of the base.
OUT_OF_BASE = {"P4", "L4", "MI100"}
# SMs of 128 lanes, half of them shared with integers: Ampere's graphics chips, Ada, Hopper and what follows.
WIDE_SMS = {"L4", "H100-SXM5-80GB"}
WIDE_ARCHITECTURES, WIDE_CHIPS = ("ada", "blackwell", "hopper"), ("GA102", "GA104", "GA106")
# What products reach of the FP32 rate of such SMs, where no GPU with them that power leaves alone is among the rows. They
# keep 8x8 results a thread in registers and load 16 operands for 64 multiplications, which for 128 lanes is 128 bytes a
# clock: all that shared memory gives, where SMs of 64 lanes need half. A prior, chosen with the H100's rows in sight.
WIDE_SHARE = 0.75
# How caches serve tensors: the best of a coarse grid over all element-wise rows.
CACHE = {"kernel.l2_share": 0.6, "kernel.l2_speedup": 1.5}
STARTS = {
    "gemm": {"gemm.compute": 0.85, "gemm.memory": 0.8},
    "elementwise": {"elementwise.memory": 0.87},
    "softmax": {"softmax.memory": 0.7},
    "layer_norm": {"layer_norm.memory": 0.6},
    "convolution": {"convolution.compute": 0.75, "winograd.compute": 0.7, "winograd.memory": 0.8},
}

GPUS = tuple(HOST_FLOOR_US)  # whose rows are used


class Rows:
    """Measured kernels of one family on one GPU."""

    def __init__(self):
        self.rows, self.percentile = [], []

    def add(self, row):
        self.rows.append(row)
        # Without the GPU's name, so that a shape is held out on every GPU or on none.
        digest = hashlib.md5(row.text.split(" ", 1)[1].encode()).hexdigest()
        self.percentile.append(int(digest, 16) % 100)

    def sample(self, held_out):
        chosen = [i for i, p in enumerate(self.percentile) if (p < HELD_OUT_PERCENT) == held_out]
        random.Random(1).shuffle(chosen)
        return [self.rows[i] for i in sorted(chosen[:ROWS_PER_FIT])]


class Times:
    """Whole measured times of rows, launch on an idle GPU included, as coefficients predict them."""

    def __init__(self, context, neutral, rows, host=None):
        self.tool = Tool(context.tools + "/timing_rows", [row.text for row in rows], neutral)
        self.measured = [row.time for row in rows]
        self.floor = [1e3 * (host or HOST_FLOOR_US[row.gpu]) * OPERATOR_FLOOR[row.operator] for row in rows]
        self.span = [offset_span(row) for row in rows]

    def predict(self, patch):
        kernel = self.tool({**CACHE, **patch, "kernel.floor_us": 0})
        return [max(f, with_offset(GAP * f + k, s)) for f, k, s in zip(self.floor, kernel, self.span)]

    def loss(self, patch, start):
        error = sum(abs(math.log(p / t)) for p, t in zip(self.predict(patch), self.measured)) / len(self.measured)
        return error + PULL * sum(math.log(value / start[name]) ** 2 for name, value in patch.items())

    def errors(self, patch):
        return errors(self.predict(patch), self.measured)


def rows_by_family(context):
    """family -> GPU -> Rows."""
    families = collections.defaultdict(lambda: collections.defaultdict(Rows))
    for name, read in FAMILIES.items():
        for row in read(context.data):
            family = {"ln": "layer_norm", "softmax": "softmax"}.get(row.operator, name)
            families[family][row.gpu].add(row)
    return families


def fit_operators(context, neutral, report):
    fitted = collections.defaultdict(dict)  # family -> GPU -> patch
    host = statistics.median(sorted(set(HOST_FLOOR_US.values())))
    for family, by_gpu in sorted(rows_by_family(context).items()):
        for gpu, rows in sorted(by_gpu.items()):
            if not context.sees(gpu):
                continue
            train = Times(context, neutral, rows.sample(held_out=False))
            if len(train.measured) >= 30:
                fitted[family][gpu] = descend(lambda patch: train.loss(patch, STARTS[family]), STARTS[family], least=FINEST)
            train.tool.close()
            test = rows.sample(held_out=True)
            if gpu not in fitted[family] or not test or context.quick:
                continue
            times = Times(context, neutral, test)
            report.append({"measure": f"operators/{family}", "gpu": gpu, "split": "unseen shapes",
                           **times.errors(fitted[family][gpu])})
            print(report[-1], {k: round(v, 3) for k, v in fitted[family][gpu].items()}, flush=True)
            times.tool.close()
        for gpu in sorted(fitted[family]):
            patch, test = base_of(fitted[family], without=gpu), by_gpu[gpu].sample(True)
            if patch and family == "gemm" and gpu in WIDE_SMS:
                patch.update(wide_of(fitted[family], without=gpu))
            if patch and test and not context.quick:
                times = Times(context, neutral, test, host)
                report.append({"measure": f"operators/{family}", "gpu": gpu, "split": "GPU left out",
                               **times.errors(patch)})
                print(report[-1], flush=True)
                times.tool.close()
    return fitted


def base_of(by_gpu, without=None):
    """Median over the GPUs that speak for others."""
    usable = [p for g, p in sorted(by_gpu.items()) if g not in OUT_OF_BASE and g != without]
    if not usable:
        return {}
    return {name: statistics.median(p[name] for p in usable) for name in usable[0]}


def wide_of(by_gpu, without=None):
    """The share of the peak that GEMM reaches on SMs of 128 lanes, half of them shared with integers: harder to fill."""
    usable = [p["gemm.compute"] for g, p in sorted(by_gpu.items())
              if g in WIDE_SMS and g not in OUT_OF_BASE and g != without]
    return {"gemm.compute": statistics.median(usable) if usable else WIDE_SHARE}


PROVENANCE = {"rows": "NeuSight (MIT, Georgia Institute of Technology and Microsoft): single-operator times, FP32"}


def fit(context, folder):
    """Writes operators.json into `folder`."""
    report = []
    with tempfile.TemporaryDirectory() as empty:
        neutral = os.path.join(empty, "neutral.json")
        write_tree(neutral, header({}, []))
        fitted = fit_operators(context, neutral, report)
    base, gpus, chips = {}, collections.defaultdict(dict), collections.defaultdict(dict)
    for by_gpu in fitted.values():
        base.update(base_of(by_gpu))
        for gpu, patch in by_gpu.items():
            gpus[gpu].update(patch)
    for chip in sorted({CHIPS[g] for g in gpus} - {CHIPS[g] for g in OUT_OF_BASE}):
        members = [gpus[g] for g in sorted(gpus) if CHIPS[g] == chip]
        for name in sorted({n for m in members for n in m}):
            chips[chip][name] = statistics.median(m[name] for m in members if name in m)
    wide = wide_of(fitted["gemm"])
    for chip in WIDE_CHIPS:
        chips[chip].update(wide)
    # Spreads are judgement: GPUs without rows, then those with rows of FP32 operators only.
    base.update({**CACHE, "spread.common": 0.2, "spread.tensor": 0.5})
    for layer in list(gpus.values()) + [p for c, p in chips.items() if c not in WIDE_CHIPS]:
        layer["spread.common"] = 0.1
    boards = {c: "/".join(g for g in sorted(gpus) if CHIPS[g] == c) or "GPUs with as many CUDA cores a multiprocessor"
              for c in chips}
    write_tree(os.path.join(folder, "operators.json"), {
        **header(PROVENANCE, report), "residual": "residual.trees",
        "base": {"basis": "data sheet of a GPU that was not measured, efficiencies of others", **nested(base)},
        "architectures": {a: nested(wide) for a in WIDE_ARCHITECTURES},
        "chips": {c: {"basis": f"operators timed on {boards[c]}, not on this machine", **nested(p)} for c, p in sorted(chips.items())},
        "gpus": {g: {"basis": f"operators timed on {g}, not on this machine", **nested(p)} for g, p in sorted(gpus.items())}})
