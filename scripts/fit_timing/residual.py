"""Learned times of FP32 kernels, from NeuSight's rows -> residual.trees.

What is learned is the logarithm of a kernel's time over that by plain rules with no fitted number in them; the features
and the plain time come from timing_rows --features. Needs xgboost and numpy; one thread, so that the same rows give the
same file, bit for bit. docs/models/time.md, "The learned residual", describes the file.
"""
import json
import os
import statistics
import struct
import subprocess
import tempfile

import numpy
import xgboost

from .common import Context
from .operator_rows import CHIPS, GAP, HOST_FLOOR_US, LEARNED, floors, offset_span, with_offset
from .tree_file import replace_forest, write_body

FOLDS = 5
LEAF = 0xFFFF
DEVICE_FLOOR = 2000  # ns: kernel.floor_us, which the forecast adds
UNSEEN = 1.12  # below this multiple of the floor a row says nothing about the kernel but that it is short
SHORT_WEIGHT = 0.02
TRACED_WEIGHT = 4.0  # of a product within a step, of which there are few; not tuned
SETTINGS = {"gemm": (500, 8, 0.08), "elementwise": (200, 6, 0.1), "rows": (300, 6, 0.1),
            "convolution": (300, 6, 0.05)}  # trees, depth, learning rate
# Families of which trees on the shape alone (no figure of the GPU, no absolute time) help every GPU that was left out;
# (trees, depth, learning rate), and the share of what they say that counts, chosen by these GPUs.
TRANSFER = {"rows": ((80, 5, 0.1), 0.5), "convolution": ((80, 5, 0.1), 1.0)}
NOT_TRANSFERRED = ("gpu_", "bytes", "plain")  # names, or what they begin with when they end in _
# Offsets are estimated of shapes that several GPUs share: rounds, and parts of the shapes of which each is told by trees
# that saw the others; how far such trees are off of a kernel, and of the shortest ones in ns.
OFFSET_ROUNDS, OFFSET_PARTS, OFFSET_SETTINGS = 2, 3, (150, 6, 0.1)
OFFSET_RELATIVE, OFFSET_LEAST = 0.1, 15000
LEAST_KERNEL = 0.1  # of what a row leaves to its kernels: no offset takes more
QUICK = (200, 6, 0.1)
QUICK_ROWS = 40000
PROVENANCE = {"rows": "NeuSight (MIT, Georgia Institute of Technology and Microsoft): single-operator times, FP32, and "
                      "products within whole steps",
              "made_by": "scripts/fit-timing"}

GPUS = tuple(HOST_FLOOR_US)  # whose rows are used


class Family:
    """Rows of one family with their features."""

    def __init__(self, context, name):
        self.name = name
        self.rows = [row for row in LEARNED[name](context.data) if context.sees(row.gpu)]
        with tempfile.NamedTemporaryFile("w", suffix=".rows", delete=False) as file:
            file.write("".join(row.text + "\n" for row in self.rows))
        out = subprocess.run([context.tools + "/timing_rows", file.name, "--features"], check=True,
                             stdout=subprocess.PIPE).stdout
        os.unlink(file.name)
        end = out.index(b"\n")
        words = out[:end].decode().split()
        self.fingerprint, self.names = words[1], words[2:]
        values = numpy.frombuffer(out[end + 1:]).reshape(len(self.rows), -1)
        self.fold, self.plain = values[:, 0].astype(int), values[:, 1]
        self.features = values[:, 2:].astype(numpy.float32)
        self.time = numpy.array([row.time for row in self.rows])
        self.gpu = numpy.array([row.gpu for row in self.rows])
        self.traced = numpy.array([row.operator == "traced" for row in self.rows])
        self.floor = numpy.array(floors(self.rows, self.plain))
        self.gap = GAP * self.floor - DEVICE_FLOOR
        self.span = numpy.array([offset_span(row) for row in self.rows])
        self.shape = numpy.unique([row.text.split(" ", 1)[1] for row in self.rows], return_inverse=True)[1]

    def targets(self, offset=0.0):
        """Logarithm of the kernel's time over the plain one, and what each row's word weighs: errors count by what
        they do to the whole measured time. Rows at the floor only keep short kernels from being thought long."""
        kernel = self.time - self.gap - DEVICE_FLOOR
        kernel = numpy.maximum(numpy.maximum(kernel - offset, LEAST_KERNEL * kernel), 1.0)
        target = numpy.log(kernel / self.plain)
        weight = (kernel / self.time) ** 2
        short = self.time < UNSEEN * self.floor
        for gpu in numpy.unique(self.gpu):
            mine = self.gpu == gpu
            typical = numpy.median(target[mine & ~short]) if (mine & ~short).any() else 0.0
            at_most = numpy.log(0.9 * (self.floor - self.gap) / self.plain)
            target[mine & short] = numpy.minimum(typical, at_most)[mine & short]
        weight[short] = SHORT_WEIGHT
        weight[self.traced] *= TRACED_WEIGHT
        return target, weight

    def predicted(self, logarithms):
        issued = self.gap + DEVICE_FLOOR + self.plain * numpy.exp(logarithms)
        return numpy.maximum(self.floor, with_offset(issued, self.span))

    def errors(self, logarithms, chosen):
        relative = numpy.abs(self.predicted(logarithms)[chosen] / self.time[chosen] - 1)
        return {"rows": int(chosen.sum()), "mape": round(100 * float(relative.mean()), 1),
                "mdape": round(100 * float(numpy.median(relative)), 1),
                "p90": round(100 * float(numpy.quantile(relative, 0.9)), 1)}


def shares_of(family, chosen, kernel):
    """The share of the span that the rows of each shape have on average beyond `kernel`, pulled to one half as the even
    distribution asks."""
    beyond = family.time - family.gap - DEVICE_FLOOR - kernel
    certainty = 1 / ((OFFSET_RELATIVE * kernel) ** 2 + OFFSET_LEAST ** 2)
    shapes, prior = family.shape.max() + 1, 12.0  # one over the variance of an even distribution
    above = numpy.bincount(family.shape[chosen], (family.span * beyond * certainty)[chosen], shapes) + 0.5 * prior
    below = numpy.bincount(family.shape[chosen], (family.span ** 2 * certainty)[chosen], shapes) + prior
    return numpy.clip(above / below, 0, 1)


def offsets_of(family, chosen):
    """What the chosen rows hold besides their kernels, in ns: trees tell the kernels of shapes that they have not seen, what
    is left over and common to the GPUs of a shape is its offset, and trees that know it tell kernels better."""
    offset = 0.5 * family.span
    for _ in range(OFFSET_ROUNDS if family.span.any() else 0):
        kernel = numpy.ones(len(family.rows))
        for part in range(OFFSET_PARTS):
            inside = chosen & (family.shape % OFFSET_PARTS == part)
            booster = boosted(family, chosen & ~inside, OFFSET_SETTINGS, offset)
            said = booster.predict(xgboost.DMatrix(family.features[inside]))
            kernel[inside] = family.plain[inside] * numpy.exp(said)
        offset = family.span * shares_of(family, chosen, kernel)[family.shape]
    return offset


def train(family, chosen, settings):
    return boosted(family, chosen, settings, offsets_of(family, chosen))


def boosted(family, chosen, settings, offset):
    trees, depth, learning_rate = settings
    target, weight = family.targets(offset)
    matrix = xgboost.DMatrix(family.features[chosen], label=target[chosen], weight=weight[chosen])
    return xgboost.train({"tree_method": "hist", "max_bin": 256, "learning_rate": learning_rate, "max_depth": depth,
                          "subsample": 0.8, "colsample_bytree": 0.7, "min_child_weight": 3, "nthread": 1, "seed": 1,
                          "base_score": 0.0}, matrix, trees)


def sample(family, chosen, limit):
    """At most `limit` of the chosen rows, evenly over the table."""
    found = numpy.flatnonzero(chosen)
    if len(found) > limit:
        found = found[(numpy.arange(limit) * len(found)) // limit]
    kept = numpy.zeros(len(chosen), bool)
    kept[found] = True
    return kept


def nodes_of(tree):
    """One tree as (value, feature, right) with the left child next; thresholds and leaves in single precision."""
    left, right = tree["left_children"], tree["right_children"]
    out = []

    def walk(i):
        at = len(out)
        out.append(None)
        if left[i] < 0:
            out[at] = (tree["split_conditions"][i], LEAF, 0)
            return
        walk(left[i])
        second = len(out)
        walk(right[i])
        out[at] = (tree["split_conditions"][i], tree["split_indices"][i], second - at)

    walk(0)
    return out


def transferred(name):
    return not any(name == n or n.endswith("_") and name.startswith(n) for n in NOT_TRANSFERRED)


def transfer_forest(family, settings, share):
    """For chips without rows: trees on the differences between shapes within a GPU, each GPU counting alike."""
    trees, depth, learning_rate = settings
    target, weight = family.targets(offsets_of(family, numpy.ones(len(family.rows), bool)))
    middles = {}
    for gpu in sorted(set(map(str, family.gpu))):
        mine = family.gpu == gpu
        middles[gpu] = float(numpy.average(target[mine], weights=weight[mine]))
        target[mine] -= middles[gpu]
        weight[mine] /= weight[mine].sum()
    features = family.features.copy()
    for column, name in enumerate(family.names):
        if not transferred(name):
            features[:, column] = 0
    weight *= len(weight) / weight.sum()
    matrix = xgboost.DMatrix(features, label=target, weight=weight)
    booster = xgboost.train({"tree_method": "hist", "max_bin": 256, "learning_rate": learning_rate, "max_depth": depth,
                             "subsample": 0.8, "colsample_bytree": 0.7, "min_child_weight": 20, "lambda": 5,
                             "nthread": 1, "seed": 1, "base_score": 0.0}, matrix, trees)
    by_chip = {}
    for gpu, middle in middles.items():
        by_chip.setdefault(CHIPS[gpu], []).append(middle)
    base = statistics.median(sum(m) / len(m) for m in by_chip.values())
    return forest_of(family, booster, ["*"], -1, base, share)


def forget_chip(context, path, chip):
    """Trees for chips without rows as they would be had none of `chip` been measured."""
    for name in TRANSFER:
        if chip in {CHIPS[row.gpu] for row in LEARNED[name](context.data) if row.gpu in CHIPS}:
            of_chip = next(gpu for gpu in GPUS if CHIPS[gpu] == chip)
            family = Family(Context(context.data, context.tools, without_gpu=of_chip), name)
            replace_forest(path, transfer_forest(family, *TRANSFER[name]))


def forest_of(family, booster, chips, fold, base=0.0, share=1.0):
    """Header entry and bytes of one forest that says base + share x what the booster says."""
    model = json.loads(booster.save_raw("json"))
    trees = [[(value * share if feature == LEAF else value, feature, right) for value, feature, right in nodes_of(t)]
             for t in model["learner"]["gradient_booster"]["model"]["trees"]]
    data = struct.pack(f"<{len(trees)}I", *(len(t) for t in trees))
    data += b"".join(struct.pack("<fHH", *node) for tree in trees for node in tree)
    checks = family.features[:: max(1, len(family.features) // 3)][:3]
    values = booster.predict(xgboost.DMatrix(checks))
    return {"family": family.name, "chips": chips, "fold": fold, "base": base, "trees": len(trees),
            "nodes": sum(len(t) for t in trees), "rows": int(len(family.rows)),
            "check": [{"features": [float(x) for x in row], "value": base + share * float(value)}
                      for row, value in zip(checks, values)]}, data


def write(path, fingerprint, forests, report, provenance=None):
    header = json.dumps({"format": "stoker-residual", "fingerprint": fingerprint, "provenance": provenance or PROVENANCE,
                         "measured_error": report, "forests": [entry for entry, _ in forests]}).encode() + b"\n"
    write_body(path, header, b"".join(data for _, data in forests))


def chips_of(family):
    return sorted({CHIPS[str(gpu)] for gpu in set(family.gpu)})


def report_of(family, settings, report):
    """Errors on the first fold's shapes, by a forest that saw none of them."""
    held = family.fold == 0
    booster = train(family, ~held, settings)
    logarithms = booster.predict(xgboost.DMatrix(family.features))
    for gpu in ["all", *sorted(set(map(str, family.gpu)))]:
        chosen = held & ((family.gpu == gpu) | (gpu == "all"))
        report.append({"measure": f"operators/{family.name}", "gpu": gpu, "split": "unseen shapes",
                       **family.errors(logarithms, chosen)})
        print(report[-1], flush=True)


def fit(context, folder):
    """Writes residual.trees into `folder`."""
    forests, report = [], []
    for name in LEARNED:
        family = Family(context, name)
        if context.quick:
            chosen = sample(family, numpy.ones(len(family.rows), bool), QUICK_ROWS)
            forests.append(forest_of(family, train(family, chosen, QUICK), chips_of(family), -1))
            if name in TRANSFER:
                forests.append(transfer_forest(family, *TRANSFER[name]))
            continue
        report_of(family, SETTINGS[name], report)
        everything = numpy.ones(len(family.rows), bool)
        forests.append(forest_of(family, train(family, everything, SETTINGS[name]), chips_of(family), -1))
        if name in TRANSFER:
            forests.append(transfer_forest(family, *TRANSFER[name]))
    write(os.path.join(folder, "residual.trees"), family.fingerprint, forests, report)


def fit_across(context, folder):
    """Cross-fitted: forest k of a family saw no shape whose hash leaves k."""
    forests = []
    for name in LEARNED:
        family = Family(context, name)
        for fold in range(FOLDS):
            forests.append(forest_of(family, train(family, family.fold != fold, SETTINGS[name]), chips_of(family), fold))
            print(f"{name}, fold {fold}", flush=True)
    write(os.path.join(folder, "residual.trees"), family.fingerprint, forests, [])
