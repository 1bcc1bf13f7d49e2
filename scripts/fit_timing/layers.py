"""One-layer networks of TensorFlow 1 in FP32 -> layers.json and layers.trees of the accuracy bench.

What a part of a network takes at data-sheet rates, its features and the analytic time come from timing_layers. Weights of
the parts are fitted by least squares without negative ones, of relative errors with large ones weighted down: for each
GPU, for its architecture, and for all from Maxwell on (the base, which serves GPUs without rows). Trees then learn the
logarithm of measured over analytic time from features that name no GPU. Needs xgboost, numpy and scipy; one thread, so
that the same rows give the same files, bit for bit.
"""
import json
import math
import os
import subprocess
import tempfile

import numpy
import xgboost
from scipy.optimize import minimize, nnls

from . import residual
from .common import header, read_csv, write_tree

# Where the files stand that were fitted on all rows, and their folder in those of folds: no forecast reads them.
HOME = os.path.join(os.path.dirname(__file__), "..", "..", "bench", "accuracy", "layers", "fitted")
ROOM = "layers"
FOLDS = 5
PARTS = ("convolution convolution_input convolution_weight product product_input product_weight layout layout_backward "
         "padding activation activation_gradient bias bias_gradient filter input output loss gradient update_sgd "
         "update_momentum update_adagrad update_rmsprop update_adam update_adadelta input_work output_work padding_work "
         "loss_work").split()
OPTIMIZERS = ["none", "sgd", "momentum", "adagrad", "rmsprop", "adam", "adadelta"]
ACTIVATIONS = ["none", "relu", "tanh", "sigmoid", "softmax"]
TABLES = {"convolution": "/layers-mlpredict-conv.csv.gz", "dense": "/layers-mlpredict-dense.csv.gz"}
GPUS = ("GTX1080Ti", "K40", "K80-die", "M60-die", "P100-PCIe-16GB")
ROWS_PER_WEIGHTS = 4000
TREES = {"convolution": (200, 7), "dense": (150, 6)}
ROWS_PER_FOREST = 60000
SHRINK = 0.03  # relative errors above it weigh less
# Half-widths for GPUs without rows: about the p90 of convolutions on GPUs that were left out; fixed times of the five
# hosts differ by a factor of up to 2.2 from their mean.
UNSEEN_SPREAD = {"spread": 0.25, "floor_spread": 1.2}
# What the doubt of a call goes with, as SpreadSlope of the bench: see slopes_of.
SHARE_FIXED = 19  # in the features: what of the analytic time is fixed
SLOPES = ("one", "time", "batch", "in", "out", "side", "forward")
PENALTY = 20.0  # of what lies outside a 90 % band: 2 / 0.1
PROVENANCE = {"rows": "CDECatapult/ml-performance-prediction and mlpredict (Apache-2.0): one-layer TensorFlow 1 networks"}


def line_of(row, kind):
    tail = f"{ACTIVATIONS.index(row['activation'])} {OPTIMIZERS.index(row['optimizer'])}"
    if kind == "dense":
        return f"{row['gpu']} 1 {row['batch']} {row['dim_in']} {row['dim_out']} 1 1 1 0 1 {tail}"
    return (f"{row['gpu']} 0 {row['batch']} {row['cin']} {row['cout']} {row['in_size']} {row['ksize']} {row['stride']} "
            f"{int(row['padding'] == 'same')} {row['use_bias']} {tail}")


class Networks:
    """Rows of one table; `ask` gets columns, analytic time and features from the tool."""

    def __init__(self, context, kind):
        self.kind = kind
        rows = [r for r in read_csv(context.data + TABLES[kind]) if r["time_ms_median"] and context.sees(r["gpu"])]
        self.lines = [line_of(r, kind) for r in rows]
        self.time = numpy.array([float(r["time_ms_median"]) for r in rows])
        self.gpu = numpy.array([r["gpu"] for r in rows])
        self.optimizer = numpy.array([OPTIMIZERS.index(r["optimizer"]) for r in rows])
        self.batch = numpy.array([int(r["batch"]) for r in rows])
        names = ("batch", "dim_in", "dim_out") if kind == "dense" else ("batch", "cin", "cout", "in_size")
        self.sizes = numpy.array([[int(r[x]) for x in names] + [1] * (4 - len(names)) for r in rows], float)

    def ask(self, tools, folder):
        with tempfile.NamedTemporaryFile("w", suffix=".rows", delete=False) as file:
            file.write("".join(line + "\n" for line in self.lines))
        out = subprocess.run([tools + "/timing_layers", file.name, "--coefficients", folder], check=True,
                             stdout=subprocess.PIPE).stdout
        os.unlink(file.name)
        values = numpy.frombuffer(out).reshape(len(self.lines), -1)
        n = len(PARTS)
        self.columns, self.analytic, self.predicted = values[:, :n], values[:, n], values[:, n + 1]
        self.fold, self.features = values[:, n + 2].astype(int), values[:, n + 3:].astype(numpy.float32)


def spread_out(chosen, limit):
    """At most `limit` of the chosen rows, evenly over the table."""
    found = numpy.flatnonzero(chosen)
    return found if len(found) <= limit else found[(numpy.arange(limit) * len(found)) // limit]


def weights(networks, gpus):
    """Fixed milliseconds by kind and optimizer, then a weight for each part; one fit of both tables."""
    designs, times = [], []
    for position, n in enumerate(networks.values()):
        rows = spread_out(numpy.isin(n.gpu, gpus), ROWS_PER_WEIGHTS)
        fixed = numpy.zeros((len(rows), len(networks) * len(OPTIMIZERS)))
        fixed[numpy.arange(len(rows)), position * len(OPTIMIZERS) + n.optimizer[rows]] = 1
        designs.append(numpy.concatenate([fixed, n.columns[rows]], 1))
        times.append(n.time[rows])
    relative = numpy.concatenate(designs) / numpy.concatenate(times)[:, None]
    answer = nnls(relative, numpy.ones(len(relative)))[0]
    for _ in range(8):
        weight = 1 / numpy.sqrt(numpy.maximum(numpy.abs(relative @ answer - 1), SHRINK))
        answer = nnls(relative * weight[:, None], weight)[0]
    return answer


def patch_of(networks, values):
    names = [f"{kind}_us_{optimizer}" for kind in networks for optimizer in OPTIMIZERS]
    scale = [1e3] * len(names) + [1] * len(PARTS)
    return {"session": {name: float(f"{factor * value:.3g}")
                        for name, factor, value in zip(names + PARTS, scale, values)}}


def forest_of(networks, family, chosen, settings, fold):
    trees, depth = settings
    rows = spread_out(chosen, ROWS_PER_FOREST)
    target = numpy.log(networks.time / networks.analytic)
    booster = xgboost.train({"tree_method": "hist", "max_bin": 128, "learning_rate": 0.13, "max_depth": depth,
                             "subsample": 0.8, "colsample_bytree": 0.7, "min_child_weight": 15, "nthread": 1, "seed": 1,
                             "base_score": 0.0}, xgboost.DMatrix(networks.features[rows], label=target[rows]), trees)
    networks.name, networks.rows = family, rows
    return booster, residual.forest_of(networks, booster, ["*"], fold)


def errors(networks, predicted, chosen):
    relative = numpy.abs(predicted[chosen] / networks.time[chosen] - 1)
    return {"rows": int(chosen.sum()), "mape": round(100 * float(relative.mean()), 1),
            "mdape": round(100 * float(numpy.median(relative)), 1),
            "p90": round(100 * float(numpy.quantile(relative, 0.9)), 1)}


def with_factor(networks, booster):
    return networks.analytic * numpy.exp(booster.predict(xgboost.DMatrix(networks.features)))


def write_weights(context, networks, folder):
    architecture = {r["gpu"]: r["architecture"].lower() for r in read_csv(context.data + "/gpus.csv")}
    gpus = sorted(map(str, set(networks["convolution"].gpu)))
    groups = {"base": {"": [g for g in gpus if architecture[g] != "kepler"]}, "architectures": {},
              "gpus": {g: [g] for g in gpus}}
    for g in gpus:
        groups["architectures"].setdefault(architecture[g], []).append(g)
    tree = {**header(PROVENANCE, []), "format": "stoker-layer-coefficients", "trees": "layers.trees"}
    for section, members in groups.items():
        patches = {name: patch_of(networks, weights(networks, chosen)) for name, chosen in members.items()}
        tree[section] = patches[""] if section == "base" else patches
    write_tree(os.path.join(folder, "layers.json"), tree)


def prepare(context, folder):
    if os.path.exists(os.path.join(folder, "layers.trees")):
        os.unlink(os.path.join(folder, "layers.trees"))
    networks = {kind: Networks(context, kind) for kind in TABLES}
    for n in networks.values():
        n.ask(context.tools, HOME)
    write_weights(context, networks, folder)
    for n in networks.values():
        n.ask(context.tools, os.path.join(folder, "layers.json"))
    return networks


def add_spreads(tree, report):
    """Half-widths of bands: of GPUs with rows the measured p90 on unseen shapes, of others constants."""
    measured = {(e["measure"], e["gpu"]): e["p90"] / 100 for e in report}
    for patch in [tree["base"], *tree["architectures"].values(), *tree["gpus"].values()]:
        patch["session"].update(UNSEEN_SPREAD)
    for gpu, patch in tree["gpus"].items():
        for name, kind in (("spread", "convolution"), ("floor_spread", "dense")):
            if ("layers/" + kind, gpu) in measured:
                patch["session"][name] = float(f"{measured['layers/' + kind, gpu]:.3g}")


def slopes_of(networks, kind, predicted, held, tree):
    """How the width of a band changes with the network: least interval score over shapes that the trees have not seen."""
    fixed = networks.features[held][:, SHARE_FIXED]
    base = numpy.array([math.hypot(f * tree["gpus"][g]["session"]["floor_spread"], (1 - f) * tree["gpus"][g]["session"]["spread"])
                        for f, g in zip(fixed, networks.gpu[held])])
    sizes = numpy.log2(numpy.maximum(networks.sizes[held], 1))
    with_what = numpy.column_stack([numpy.ones(len(base)), numpy.log2(networks.analytic[held]), sizes,
                                    networks.optimizer[held] == 0])
    error = numpy.log(networks.time[held] / predicted[held])

    def loss(slopes):
        reach = base * numpy.exp(with_what @ slopes)
        low, high = numpy.exp(-error - numpy.log1p(reach)), numpy.exp(numpy.log1p(reach) - error)
        score = high - low + PENALTY * (numpy.maximum(0, low - 1) + numpy.maximum(0, 1 - high))
        slope = (low + high - PENALTY * (low * (low > 1) + high * (high < 1))) * reach / (1 + reach)
        return score.mean(), with_what.T @ slope / len(base)

    found = minimize(loss, numpy.zeros(len(SLOPES)), jac=True, method="BFGS").x
    return {f"{kind}_spread_{name}": float(f"{value:.3g}") for name, value in zip(SLOPES, found)}


def finish(context, folder, forests, report, unseen=None):
    fingerprint = subprocess.run([context.tools + "/timing_layers", "--fingerprint"], check=True,
                                 stdout=subprocess.PIPE).stdout.decode().strip()
    path = os.path.join(folder, "layers.json")
    with open(path) as file:
        tree = json.load(file)
    add_spreads(tree, report)
    for kind, (n, predicted, held) in (unseen or {}).items():
        tree["base"]["session"].update(slopes_of(n, kind, predicted, held, tree))
    write_tree(path, {**tree, "measured_error": report})
    residual.write(os.path.join(folder, "layers.trees"), fingerprint, forests, report,
                   {**PROVENANCE, "made_by": "scripts/fit-timing"})


def fit(context, folder):
    """Writes layers.json and layers.trees into `folder`."""
    networks, forests, report, unseen = prepare(context, folder), [], [], {}
    for kind, n in networks.items():
        everything = numpy.ones(len(n.time), bool)
        held = n.fold == 0
        booster, _ = forest_of(n, kind + "_network", ~held, TREES[kind], -1)
        predicted = with_factor(n, booster)
        for gpu in ["all", *sorted(map(str, set(n.gpu)))]:
            chosen = held & ((n.gpu == gpu) | (gpu == "all")) & (n.batch < 33)
            report.append({"measure": f"layers/{kind}", "gpu": gpu, "split": "unseen shapes, batch < 33",
                           **errors(n, predicted, chosen)})
            print(report[-1], flush=True)
        unseen[kind] = (n, predicted, held & (n.batch < 33))
        forests.append(forest_of(n, kind + "_network", everything, TREES[kind], -1)[1])
    finish(context, folder, forests, report, unseen)


def fit_across(context, folder):
    """Cross-fitted: forest k of a family saw no shape whose hash leaves k. The weights saw all."""
    networks, forests = prepare(context, folder), []
    for kind, n in networks.items():
        for fold in range(FOLDS):
            forests.append(forest_of(n, kind + "_network", n.fold != fold, TREES[kind], fold)[1])
    finish(context, folder, forests, [])
