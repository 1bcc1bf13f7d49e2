"""Half-widths of bands, from how far whole steps were off -> widths.json.

A band is the root of a sum of squares (docs/models/time.md, "Bands"): shares of the step times coefficients. All tables of
measured steps are fitted at once, since they share classes of cost, so that the mean interval score (Gneiting, Raftery
2007) is least, each table weighing as the root of its rows. A coefficient is pulled to where it starts; classes that one
unit limits move together at a small part of that pull, since a few hundred rows tell little of each alone. Scored on groups
(a model of a table; a GPU of published throughput) that the widths have not seen, ten folds. Forecasts are those of the
coefficients that ship, which have seen many of these rows; what leaving them out changes is in the report of each part,
0.1 to 2 points. Each row counts once more as its chip would be served if none of its rows were known, without the chip's
layers and trees, and is scored by widths that no row of the chip has seen; so is each table by widths that saw none of it.
Needs numpy, scipy and xgboost.
"""
import json
import math
import os
import shutil
import subprocess
import tempfile

import numpy
from scipy.optimize import minimize

from .common import Tool, chips, header, nested, read_csv, write_tree
from .host import Rows as HostRows
from .residual import forget_chip
from .steps import PARAMETERS_DIFFER, hash_of, step_rows
from .tree_file import drop_chip as drop_chip_of_trees

PENALTY = 20.0  # of what lies outside a 90 % band: 2 / 0.1
PULL = 10.0     # of each logarithm towards where it starts, over all of them
TOGETHER = 0.03  # of that pull, for what classes of one unit share; both chosen by groups left out
FOLDS = 10
UNSEEN = "unseen"  # what all kernels share on a chip without rows, beyond what they do on others
BASE_SAW_THE_CHIP = "llm-training"  # its figures are of all GPUs: without the chip's layers they are what they were
# Where a coefficient starts that the cost classes do not say: judgement from single operators and GPUs left out.
START = {"spread.common": 0.07, "spread.tensor": 0.1, "band.capped": 0.2, "band.backward": 0.05, "band.latency": 0.2,
         "beyond": 0.5, "band.host": 1.0,
         # The next two were chosen by chips left out, among 0.08 to 0.15 and 0.05 to 0.4.
         UNSEEN: 0.08, "band.unseen_convolution": 0.13,
         "flash_attention.spread": 0.15, "communication": 0.2, "copy": 0.3}
PRODUCTS, CONVOLUTIONS = ("gemm", "attention"), ("conv", "winograd", "depth")
CHIP = 3  # CoefficientLevel::kChip: from there on rows of the chip exist


def shape_words(context, model):
    """What the name of a capture of this model holds."""
    for row in read_csv(os.path.join(context.data, "models-neusight.csv")):
        if row["model"] == model:
            return [f"ffn__{int(float(row['ffn']))}__"] if not model.startswith("switch") else ["expert_cap"]
    return None


def neusight(context):
    """(line of timing_steps, nanoseconds, group) of rows on one GPU that ran eagerly and are in no doubt."""
    files = sorted(f for f in os.listdir(context.steps) if f.startswith("hf_models.py_forward_only-"))
    for row in read_csv(os.path.join(context.data, "e2e-neusight.csv")):
        eager = row["compiled"] == "0" and not row["parallel"] and not row["flag"].startswith("fw_")
        if not eager or not row["neusight_e2e_ms"] or row["gpu"].startswith("MI"):
            continue
        words = shape_words(context, row["model"])
        wanted = f"seq_len{int(float(row['seqlen']))}-"
        inference = row["mode"] != "train"
        file = next((f for f in files if words and wanted in f and all(w in f for w in words)
                     and ("-inference-" in f) == inference), None)
        if file:
            yield (f"{os.path.join(context.steps, file)} {row['gpu']} {row['batch']} {row['dtype']} 0 1 0 inference",
                   float(row["e2e_ms"]) * 1e6, row["model"])


def latency(context):
    """Forward passes whose host is known."""
    for row in HostRows(context).rows:
        if row["host_cpu"]:
            yield f"{row['line']} cpu={row['host_cpu'].replace(' ', '_')}", row["ns"], row["model"] + row["gpu"] + row["precision"]


POLICIES = {"PURE": "reduce-half", "DEFAULT": "reduce-fp32"}
UNSTATED_NETWORK = 400e9  # bytes/s of a node: eight GPUs with 400 Gbit/s each


def llm(context):
    """Language models under FSDP, as bench/accuracy/common/llm_rows.cc reads them."""
    shapes = {r["model"]: "___".join(f"{k}___{r[k]}" for k in ("layers", "hidden", "heads", "kv_heads", "ffn"))
              for r in read_csv(os.path.join(context.data, "llm_models.csv"))}
    files = sorted(os.listdir(context.steps))
    for r in read_csv(os.path.join(context.data, "llm_training.csv")):
        stem = f"llm_models.py_decoder-bf16-native-shape___{shapes.get(r['model'], '?')}___"
        file = next((f for f in files if f.startswith(stem)), None)
        served = r["precision"] in ("amp_bf16", "bf16") and r["checkpointing"] in ("True", "False") and r["compile"] != "True"
        if not file or not served or r["fsdp_mixed_precision"] not in POLICIES or not context.sees(r["gpu"]):
            continue
        network = float(r["node_gbit"]) / 8 * 1e9 if r["node_gbit"] else UNSTATED_NETWORK
        parallel = "fsdp-zero2" if r["sharding"] == "SHARD_GRAD_OP" else "fsdp-zero3"
        tokens = int(r["micro_batch"]) * int(r["accumulate"]) * int(r["seq_len"])
        yield (f"{os.path.join(context.steps, file)} {r['gpu']} {r['micro_batch']} bf16 0 {r['gpus']} 0 fsdp seq_len={r['seq_len']} "
               f"accumulate={r['accumulate']} nodes={r['nodes']} network={network:.0f} parallel={parallel} "
               f"policy={POLICIES[r['fsdp_mixed_precision']]}" + (" checkpoint=blocks" if r["checkpointing"] == "True" else ""),
               tokens / float(r["tokens_per_s_per_gpu"]) * 1e9, r["model"])


def same_model(context, folder, steps):
    """Rows of timm whose step has the parameters that the table states: libraries redefine names."""
    lines, stated = steps.lines.get("timm", []), steps.parameters.get("timm", [])
    if not lines:
        return []
    tool = Tool(context.tools + "/timing_steps", lines, folder)
    tool.send({}, "kernels")
    kept = []
    for i, millions in enumerate(stated):
        count, _, _, parameters = tool.doubles(4)
        tool.doubles(5 * int(count))
        if abs(parameters / 1e6 / millions - 1) <= PARAMETERS_DIFFER:
            kept.append(i)
    tool.close()
    return kept


def tables_of(context, folder):
    steps = step_rows(context)
    if steps.lines.get("timm"):
        steps.keep("timm", same_model(context, folder, steps))
    found = {"neusight": list(neusight(context)), "inference-latency": list(latency(context)), "llm-training": list(llm(context))}
    for name in ("published", "timm"):
        lines = steps.lines.get(name, [])
        groups = [line.split()[1] for line in lines] if name == "published" else steps.models.get(name, [])
        found[name] = list(zip(lines, steps.times.get(name, []), groups))
    return {name: rows for name, rows in found.items() if len(rows) >= 20}


def drop_chip(folder, chip):
    """Takes what rows of a chip taught out of a folder of coefficients: its layers and its trees."""
    of = chips()
    for name in ("operators.json", "steps.json"):
        path = os.path.join(folder, name)
        with open(path) as file:
            tree = json.load(file)
        tree.get("chips", {}).pop(chip, None)
        tree["gpus"] = {gpu: node for gpu, node in tree.get("gpus", {}).items() if of.get(gpu) != chip}
        write_tree(path, tree)
    drop_chip_of_trees(os.path.join(folder, "residual.trees"), chip)


class Doubts:
    """Rows of all tables, as they are served and as they would be without rows of their chip: what each is off by, and the
    terms of its band."""

    def __init__(self, context, folder):
        said = subprocess.run([context.tools + "/timing_steps", "--terms"], check=True, stdout=subprocess.PIPE, text=True)
        names = said.stdout.split()
        self.names = names + ["band.host", UNSEEN]
        tables = tables_of(context, folder)
        rows = [(table, *row) for table, found in tables.items() for row in found]
        of = chips()
        self.chip = numpy.array([of[line.split()[1]] for _, line, _, _ in rows] * 2)
        self.table = numpy.array([table for table, *_ in rows] * 2)
        self.group = numpy.array([f"{table} {group}" for table, _, _, group in rows] * 2)
        self.left_out = numpy.arange(2 * len(rows)) >= len(rows)
        values = numpy.zeros((2 * len(rows), 3 + 2 * len(names)))
        values[: len(rows)] = answers(context, folder, [line for _, line, _, _ in rows])
        for chip in sorted(set(self.chip)):
            mine = [i for i in range(len(rows)) if self.chip[i] == chip]
            with tempfile.TemporaryDirectory() as without:
                shutil.copytree(folder, without, dirs_exist_ok=True)
                drop_chip(without, chip)
                forget_chip(context, os.path.join(without, "residual.trees"), chip)
                values[[len(rows) + i for i in mine]] = answers(context, without, [rows[i][1] for i in mine])
        self.squares = numpy.column_stack([values[:, 3::2], values[:, 1], values[:, 2] < CHIP]) ** 2
        self.error = numpy.log(numpy.array([time for _, _, time, _ in rows] * 2) / values[:, 0])
        start = numpy.maximum(values[: len(rows), 4::2].max(0), 0.01)
        self.start = numpy.log([START.get(n, s) for n, s in zip(self.names, [*start, 1.0, 1.0])])
        self.weight = numpy.array([1 / math.sqrt(len(tables[table])) for table in self.table])
        self.fold = numpy.array([hash_of(g, 5) % FOLDS for g in self.group])
        self.used = ~(self.left_out & (self.table == BASE_SAW_THE_CHIP))


def answers(context, folder, lines):
    """What timing_steps says of each row's doubt."""
    tool = Tool(context.tools + "/timing_steps", lines, folder)
    count = len(subprocess.run([context.tools + "/timing_steps", "--terms"], check=True, stdout=subprocess.PIPE).stdout.split())
    values = numpy.array(tool({}, "doubt", 3 + 2 * count)).reshape(len(lines), -1)
    tool.close()
    return values


def interval(error, width):
    """Interval scores relative to the truth, of bands that reach `width` in logarithms both ways."""
    low, high = numpy.exp(-error - width), numpy.exp(width - error)
    return high - low + PENALTY * (numpy.maximum(0, low - 1) + numpy.maximum(0, 1 - high))


def widths(squares, logs):
    reach = numpy.sqrt(squares @ numpy.exp(2 * logs))
    return numpy.log1p(reach), reach


def unit_of(name):
    """Classes of cost that move together: products, convolutions, the rest; None: no class."""
    if not name.endswith(".spread") or name.startswith(("kernel.", "spread.")):
        return None
    return 0 if any(w in name for w in PRODUCTS) else 1 if any(w in name for w in CONVOLUTIONS) else 2


def fit_logs(doubts, chosen):
    count = len(doubts.names)
    moves = numpy.zeros((count, count + 3))
    moves[:, :count] = numpy.eye(count)
    for i, name in enumerate(doubts.names):
        if unit_of(name) is not None:
            moves[i, count + unit_of(name)] = 1
    pull = PULL * numpy.array([1.0] * count + [TOGETHER] * 3) / (doubts.squares.max(0) > 0).sum()
    squares, error = doubts.squares[chosen], doubts.error[chosen]
    weight = doubts.weight[chosen] / doubts.weight[chosen].sum()

    def loss(moved):
        logs = doubts.start + moves @ moved
        width, reach = widths(squares, logs)
        low, high = numpy.exp(-error - width), numpy.exp(width - error)
        slope = weight * (low + high - PENALTY * (low * (low > 1) + high * (high < 1))) / ((1 + reach) * numpy.maximum(reach, 1e-9))
        down = (squares.T @ slope) * numpy.exp(2 * logs)
        return (weight * interval(error, width)).sum() + (pull * moved ** 2).sum(), moves.T @ down + 2 * pull * moved

    found = minimize(loss, numpy.zeros(count + 3), jac=True, method="L-BFGS-B").x
    return doubts.start + moves @ found


def constant_score(error):
    """The score of the best band that is equally wide for all, chosen with these truths in sight."""
    return min(interval(error, w).mean() for w in numpy.arange(0.02, 1.2, 0.005))


def unseen_widths(doubts, parts):
    """Widths of each row by a fit without its part."""
    found = numpy.zeros(len(doubts.error))
    for part in sorted(set(parts)):
        held = parts == part
        found[held] = widths(doubts.squares[held], fit_logs(doubts, doubts.used & ~held))[0]
    return found


def report_of(doubts, everything):
    report, served = [], ~doubts.left_out
    by_split = [("in sample", served, widths(doubts.squares, everything)[0]),
                ("groups left out, ten folds", served, unseen_widths(doubts, doubts.fold)),
                ("table left out", served, unseen_widths(doubts, doubts.table)),
                ("chip left out, with its layers and trees", doubts.left_out, unseen_widths(doubts, doubts.chip))]
    for table in sorted(set(doubts.table)):
        for split, kind, width in by_split:
            rows = kind & (doubts.table == table)
            error, reach = doubts.error[rows], width[rows]
            report.append({"measure": f"bands/{table}", "gpu": "all", "split": split, "rows": int(rows.sum()),
                           "coverage": round(100 * float((abs(error) <= reach).mean())),
                           "width": round(100 * float((numpy.exp(reach) - numpy.exp(-reach)).mean())),
                           "interval_score": round(100 * float(interval(error, reach).mean()), 1),
                           "constant_width_score": round(100 * float(constant_score(error)), 1)})
    return report


def with_rows(folder):
    """Chips and GPUs of which rows were fitted, by whichever file says so."""
    found = {"chips": set(), "gpus": set()}
    for name in ("operators.json", "steps.json"):
        with open(os.path.join(folder, name)) as file:
            tree = json.load(file)
        for part, names in found.items():
            names |= {n for n, node in tree.get(part, {}).items() if "common" in node.get("spread", {})}
    return found


def fit(context, folder):
    target = os.path.join(folder, "widths.json")
    with tempfile.TemporaryDirectory() as others:  # the fit starts from what the other parts say
        shutil.copytree(folder, others, dirs_exist_ok=True, ignore=shutil.ignore_patterns("widths.json"))
        doubts = Doubts(context, others)
    if len(set(doubts.table)) < 3:
        print("fit-timing: widths.json is not written: too few steps", flush=True)
        return
    logs = fit_logs(doubts, doubts.used)
    report = report_of(doubts, logs)
    told = (doubts.squares.max(0) > 0)
    patch = {n: float(v) for n, v, t in zip(doubts.names, numpy.exp(logs), told) if t and n.count(".") == 1}
    common = {"spread.common": patch["spread.common"]}
    tree = {"base": nested({**patch, "spread.common": math.hypot(patch["spread.common"], math.exp(logs[-1]))}),
            **{part: {name: {"spread": nested(common)["spread"]} for name in sorted(names)}
               for part, names in with_rows(folder).items()}}
    rows = ("NeuSight (MIT); published throughput on one GPU and published forward passes (single figures); "
            "timm and llm-foundry (Apache-2.0)")
    write_tree(target, {**header({"rows": rows}, report), **tree})
    print(json.dumps(report, indent=1), flush=True)
    print("kBeyondSpread (src/timing/gpu/step_band.cc):", round(math.exp(logs[doubts.names.index("beyond")]), 2), flush=True)
