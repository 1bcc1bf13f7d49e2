"""One-layer networks of TensorFlow 1 in FP32 -> layers.json and layers.trees of the accuracy bench.

What a part of a network takes at data-sheet rates, its features and the analytic time come from timing_layers. Weights of
the parts are fitted by least squares without negative ones, of relative errors with large ones weighted down: for each
GPU, for its architecture, and for all from Maxwell on (the base, which serves GPUs without rows). Trees then learn the
logarithm of measured over analytic time from features that name no GPU, others how far a band has to reach, by what the
first leave open of shapes that they have not seen. Needs xgboost, numpy and scipy; one thread, so that the same rows give
the same files, bit for bit.
"""
import json
import os
import subprocess
import tempfile

import numpy
import xgboost
from scipy.optimize import minimize, nnls

from . import residual
from .common import Context, header, read_csv, write_tree

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
SHARE_FIXED = 19  # in the features: what of the analytic time is fixed
PENALTY = 20.0    # of what lies outside a 90 % band: 2 / 0.1
MISSED = PENALTY / 2 - 1  # how much a miss pushes a symmetric band wider, for each push the other way
WIDTH_TREES = (150, 5)
LARGEST_BATCH = 32  # of the rows that bands are fitted to and errors are printed of
PROVENANCE = {"rows": "CDECatapult/ml-performance-prediction and mlpredict (Apache-2.0): one-layer TensorFlow 1 networks"}


def line_of(row, kind):
    tail = f"{ACTIVATIONS.index(row['activation'])} {OPTIMIZERS.index(row['optimizer'])}"
    if kind == "dense":
        return f"{row['gpu']} 1 {row['batch']} {row['dim_in']} {row['dim_out']} 1 1 1 0 1 {tail}"
    return (f"{row['gpu']} 0 {row['batch']} {row['cin']} {row['cout']} {row['in_size']} {row['ksize']} {row['stride']} "
            f"{int(row['padding'] == 'same')} {row['use_bias']} {tail}")


class Networks:
    """Rows of one table; `ask` gets columns, analytic time and features from the tool."""

    def __init__(self, context, kind, only=None):
        self.kind = kind
        rows = [r for r in read_csv(context.data + TABLES[kind])
                if r["time_ms_median"] and (r["gpu"] == only if only else context.sees(r["gpu"]))]
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


def cross_predicted(networks, kind):
    """Each row by trees that saw no shape of its fold."""
    predicted = numpy.zeros(len(networks.time))
    for fold in range(FOLDS):
        inside = networks.fold == fold
        booster, _ = forest_of(networks, kind + "_network", ~inside, TREES[kind], -1)
        predicted[inside] = with_factor(networks, booster)[inside]
    return predicted


def interval(error, width):
    low, high = numpy.exp(-error - width), numpy.exp(width - error)
    return high - low + PENALTY * (numpy.maximum(0, low - 1) + numpy.maximum(0, 1 - high))


def width_forest(networks, family, error, chosen, fold):
    """Trees that say how far a band reaches as a logarithm, for the least interval score of the errors given; they say the
    logarithm of that reach. The base is the reach that one for all would have."""
    rows = spread_out(chosen & (networks.batch <= LARGEST_BATCH), ROWS_PER_FOREST)
    size = numpy.abs(error[rows])
    base = float(numpy.log(numpy.quantile(size, 0.9)))

    def slopes(logs, _):
        reach = numpy.exp(logs + base)
        return numpy.where(size > reach, -MISSED, 1.0) * reach / reach.mean(), 3 * reach / reach.mean() + 1e-3

    trees, depth = WIDTH_TREES
    booster = xgboost.train({"tree_method": "hist", "max_bin": 128, "learning_rate": 0.1, "max_depth": depth,
                             "min_child_weight": 400, "lambda": 5, "nthread": 1, "seed": 1, "base_score": 0.0,
                             "disable_default_eval_metric": 1},
                            xgboost.DMatrix(networks.features[rows]), trees, obj=slopes)
    networks.name, networks.rows = family, rows
    return base, booster, residual.forest_of(networks, booster, ["*"], fold, base)


def reach_of(networks, base, booster):
    return numpy.exp(base + booster.predict(xgboost.DMatrix(networks.features)))


def cross_reach(networks, kind, error):
    reach = numpy.zeros(len(error))
    for fold in range(FOLDS):
        inside = networks.fold == fold
        base, booster, _ = width_forest(networks, kind + "_width", error, ~inside, -1)
        reach[inside] = reach_of(networks, base, booster)[inside]
    return reach


def band_report(kind, gpu, split, error, width):
    constant = min(float(interval(error, w).mean()) for w in numpy.arange(0.02, 1.5, 0.005))
    return {"measure": f"bands/{kind}", "gpu": gpu, "split": split, "rows": len(error),
            "coverage": round(100 * float((numpy.abs(error) <= width).mean())),
            "interval_score": round(100 * float(interval(error, width).mean()), 1),
            "constant_width_score": round(100 * constant, 1)}


def unseen_of(context, gpu):
    """By kind, of a GPU that nothing was fitted to: errors, reach by the trees, and what of the time is fixed."""
    found = {}
    others = Context(context.data, context.tools, without_gpu=gpu, quick=True)
    with tempfile.TemporaryDirectory() as folder:
        seen = prepare(others, folder)
        for kind, n in seen.items():
            known = numpy.log(n.time / cross_predicted(n, kind))
            booster, _ = forest_of(n, kind + "_network", numpy.ones(len(n.time), bool), TREES[kind], -1)
            base, widths, _ = width_forest(n, kind + "_width", known, numpy.ones(len(n.time), bool), -1)
            own = Networks(context, kind, only=gpu)
            own.ask(context.tools, os.path.join(folder, "layers.json"))
            small = own.batch <= LARGEST_BATCH
            found[kind] = [x[small] for x in (numpy.log(own.time / with_factor(own, booster)), reach_of(own, base, widths),
                                              own.features[:, SHARE_FIXED])]
    return found


def wide(part, spread, floor_spread):
    _, reach, fixed = part
    return numpy.log1p(numpy.sqrt(numpy.expm1(reach) ** 2 + (fixed * floor_spread) ** 2 + ((1 - fixed) * spread) ** 2))


def unseen_spreads(parts):
    """Half-widths of machines without rows beyond what the trees say, for the least interval score of GPUs left out; each
    GPU and kind counts alike."""
    kinds = list(TABLES)

    def loss(logs):
        spread, *floors = numpy.exp(logs)
        return sum(interval(part[0], wide(part, spread, floors[kinds.index(kind)])).mean() for kind, part in parts)

    found = minimize(loss, numpy.log([0.2, 0.5, 0.5]), method="Nelder-Mead", options={"maxiter": 200}).x
    return dict(zip(["spread", *(f"{kind}_floor_spread" for kind in kinds)], map(float, numpy.exp(found))))


def fit_unseen(context, report):
    chips_left_out = {gpu: unseen_of(context, gpu) for gpu in GPUS}
    every = [(kind, part) for found in chips_left_out.values() for kind, part in found.items()]
    for kind in TABLES:
        errors_, widths_ = [], []
        for gpu, found in chips_left_out.items():
            others = unseen_spreads([(k, p) for g, f in chips_left_out.items() if g != gpu for k, p in f.items()])
            errors_.append(found[kind][0])
            widths_.append(wide(found[kind], others["spread"], others[f"{kind}_floor_spread"]))
        report.append(band_report(kind, "all", "GPU left out, of forecast and band", numpy.concatenate(errors_),
                                  numpy.concatenate(widths_)))
        print(report[-1], flush=True)
    return unseen_spreads(every)


def finish(context, folder, forests, report, unseen):
    """`unseen`: what a machine without rows leaves open beyond what trees say."""
    fingerprint = subprocess.run([context.tools + "/timing_layers", "--fingerprint"], check=True,
                                 stdout=subprocess.PIPE).stdout.decode().strip()
    path = os.path.join(folder, "layers.json")
    with open(path) as file:
        tree = json.load(file)
    tree["base"]["session"].update({name: float(f"{value:.3g}") for name, value in unseen.items()})
    for patch in tree["gpus"].values():
        patch["session"].update({name: 0 for name in unseen})
    write_tree(path, {**tree, "measured_error": report})
    residual.write(os.path.join(folder, "layers.trees"), fingerprint, forests, report,
                   {**PROVENANCE, "made_by": "scripts/fit-timing"})


def shipped_unseen():
    with open(os.path.join(HOME, "layers.json")) as file:
        session = json.load(file)["base"]["session"]
    return {name: session[name] for name in ("spread", *(f"{kind}_floor_spread" for kind in TABLES))}


def fit(context, folder):
    """Writes layers.json and layers.trees into `folder`."""
    networks, forests, report = prepare(context, folder), [], []
    for kind, n in networks.items():
        everything = numpy.ones(len(n.time), bool)
        predicted = cross_predicted(n, kind)
        for gpu in ["all", *sorted(map(str, set(n.gpu)))]:
            chosen = (n.fold == 0) & ((n.gpu == gpu) | (gpu == "all")) & (n.batch <= LARGEST_BATCH)
            report.append({"measure": f"layers/{kind}", "gpu": gpu, "split": "unseen shapes, batch < 33",
                           **errors(n, predicted, chosen)})
            print(report[-1], flush=True)
        error, small = numpy.log(n.time / predicted), n.batch <= LARGEST_BATCH
        report.append(band_report(kind, "all", "unseen shapes, of forecast and band", error[small],
                                  cross_reach(n, kind, error)[small]))
        print(report[-1], flush=True)
        forests.append(forest_of(n, kind + "_network", everything, TREES[kind], -1)[1])
        forests.append(width_forest(n, kind + "_width", error, everything, -1)[2])
    finish(context, folder, forests, report, shipped_unseen() if context.quick else fit_unseen(context, report))


def fit_across(context, folder):
    """Cross-fitted: forest k of a family saw no shape whose hash leaves k. The weights saw all."""
    networks, forests = prepare(context, folder), []
    for kind, n in networks.items():
        error = numpy.log(n.time / cross_predicted(n, kind))
        for fold in range(FOLDS):
            forests.append(forest_of(n, kind + "_network", n.fold != fold, TREES[kind], fold)[1])
            forests.append(width_forest(n, kind + "_width", error, n.fold != fold, fold)[2])
    finish(context, folder, forests, [], shipped_unseen())
