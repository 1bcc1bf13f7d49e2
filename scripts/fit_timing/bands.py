"""Half-widths of bands, from how far whole steps were off -> widths.json.

A band is the root of a sum of squares (docs/models/time.md, "Bands"). Its parts are fitted so that the interval score over
the rows is least (Gneiting, Raftery 2007), and scored on the half of the models that they have not seen. Rows: language
models in FP32 (NeuSight), one-GPU training in mixed precision and TF32 (published), CNNs in AMP (timm, RTX 3090).
Forecasts are those of the coefficients that ship, which have seen some of these rows; what leaving them out changes is
in the report of each part, 0.1 to 1 points.
"""
import json
import math
import os

from .common import Tool, header, nested, read_csv, write_tree
from .steps import PARAMETERS_DIFFER, hash_of, step_rows

PENALTY = 20.0  # of what lies outside a 90 % band: 2 / 0.1
PULL = 0.1      # of each logarithm towards where it starts
LEAST = 0.005
WIDEN = 1.15    # a few dozen rows leave quantiles uncertain: without it the other half holds 83 %

# Which figures a group's rows tell, and where they start. Those of the first group are of chips with operator rows.
GROUPS = {
    "neusight": {"spread.common": 0.06, "gemm.spread": 0.15, "elementwise.spread": 0.2, "softmax.spread": 0.3,
                 "gather.spread": 0.5, "band.capped": 0.15, "band.backward": 0.1, "band.latency": 0.3},
    "published": {"spread.tensor": 0.3, "tensor_gemm.spread": 0.2, "tensor_convolution.spread": 0.2, "normalization.spread": 0.2},
    "timm": {"spread.common": 0.08, "spread.tensor": 0.08, "depthwise.spread": 0.3, "grouped_convolution.spread": 0.3,
             "grouped_convolution_nhwc.spread": 0.4, "normalization.spread": 0.15, "elementwise.spread": 0.15,
             "tensor_convolution.spread": 0.15, "depthwise_weight.spread": 0.3, "band.latency": 0.3},
}


def shape_words(context, model):
    """What the name of a capture of this model holds."""
    for row in read_csv(os.path.join(context.data, "models-neusight.csv")):
        if row["model"] == model:
            return [f"ffn__{int(float(row['ffn']))}__"] if not model.startswith("switch") else ["expert_cap"]
    return None


def neusight(context):
    """(line of timing_steps, nanoseconds, model) of rows on one GPU that ran eagerly and are in no doubt."""
    files = sorted(f for f in os.listdir(context.steps) if f.startswith("hf_models.py_forward_only-"))
    found = []
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
            found.append((f"{os.path.join(context.steps, file)} {row['gpu']} {row['batch']} {row['dtype']} 0 1 0 inference",
                          float(row["e2e_ms"]) * 1e6, row["model"]))
    return found


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


def rows_of(context, folder):
    steps = step_rows(context)
    if steps.lines.get("timm"):
        steps.keep("timm", same_model(context, folder, steps))
    groups = {"neusight": neusight(context)}
    for name in ("published", "timm"):
        groups[name] = list(zip(steps.lines.get(name, []), steps.times.get(name, []),
                                [m + (line.split()[1] if name == "published" else "") for m, line in
                                 zip(steps.models.get(name, []), steps.lines.get(name, []))]))
    return {name: rows for name, rows in groups.items() if len(rows) >= 20}


def interval(predicted, below, above, truth):
    low, high = predicted * (1 - below), predicted * (1 + above)
    return (high - low + PENALTY * (max(0.0, low - truth) + max(0.0, truth - high))) / truth


class Scorer:
    def __init__(self, context, path, rows):
        self.tool = Tool(context.tools + "/timing_steps", [line for line, _, _ in rows], path)
        self.truth, self.models = [t for _, t, _ in rows], [m for _, _, m in rows]
        self.predicted = self.tool({})

    def scores(self, patch):
        bands = self.tool(patch, "bands", 2)
        return [interval(self.predicted[i], bands[2 * i], bands[2 * i + 1], t) for i, t in enumerate(self.truth)], bands

    def inside(self, bands, used):
        return [self.predicted[i] * (1 - bands[2 * i]) <= self.truth[i] <= self.predicted[i] * (1 + bands[2 * i + 1]) for i in used]

    def constant(self, used):
        """The score of the best band that is equally wide for all, chosen with these truths in sight."""
        ratios = sorted(self.truth[i] / self.predicted[i] for i in used)
        sides = [max(0.0, 1 - r) for r in ratios] + [0.0], [max(0.0, r - 1) for r in ratios] + [0.0]
        return min(sum(interval(self.predicted[i], b, a, self.truth[i]) for i in used) / len(used)
                   for b in sorted(set(sides[0]))[:60] for a in sorted(set(sides[1]))[:60])


def descend(loss, start):
    best, value = dict(start), loss(start)
    steps = {name: 0.5 for name in start}
    while max(steps.values()) >= 0.1:
        for name in start:
            if steps[name] < 0.1:
                continue
            for direction in (1, -1):
                trial = {**best, name: max(LEAST, best[name] * math.exp(direction * steps[name]))}
                found = loss(trial)
                if found < value - 1e-6:
                    best, value = trial, found
                    break
            else:
                steps[name] /= 2
    return {name: WIDEN * v for name, v in best.items()}


def fit_group(scorer, start):
    def fitted(used):
        def loss(patch):
            scores, _ = scorer.scores(patch)
            pull = sum(math.log(v / start[n]) ** 2 for n, v in patch.items())
            return sum(scores[i] for i in used) / len(used) + PULL * pull / len(start)
        return descend(loss, start)

    everyone = range(len(scorer.truth))
    halves = [[i for i in everyone if hash_of(scorer.models[i], 2) & 1 == h] for h in (0, 1)]
    unseen, inside, constant = [], [], 0.0
    for seen, held in ((halves[0], halves[1]), (halves[1], halves[0])):
        if len(seen) < 5 or len(held) < 5:
            continue
        scores, bands = scorer.scores(fitted(seen))
        unseen += [scores[i] for i in held]
        inside += scorer.inside(bands, held)
    report = {}
    if unseen:
        constant = scorer.constant(list(everyone))
        report = {"rows": len(unseen), "coverage": round(100 * sum(inside) / len(inside)),
                  "interval_score": round(100 * sum(unseen) / len(unseen), 1),
                  "constant_width_score": round(100 * constant, 1)}
    return fitted(list(everyone)), report


def with_operator_rows(folder):
    """Chips and GPUs whose operators were fitted: what the rows of language models tell holds for them."""
    with open(os.path.join(folder, "operators.json")) as file:
        tree = json.load(file)
    return {part: [name for name, node in tree[part].items() if "common" in node.get("spread", {})] for part in ("chips", "gpus")}


def fit_all(context, folder):
    """Patches by group, and the report."""
    found, report = {}, []
    for name, rows in rows_of(context, folder).items():
        scorer = Scorer(context, folder, rows)
        everyone = range(len(rows))

        def line(split, patch):
            scores, bands = scorer.scores(patch)
            return {"measure": f"bands/{name}", "gpu": "all", "split": split, "rows": len(rows),
                    "coverage": round(100 * sum(scorer.inside(bands, everyone)) / len(rows)),
                    "interval_score": round(100 * sum(scores) / len(scores), 1)}

        before = line("before this fit", {})
        patch, held = fit_group(scorer, GROUPS[name])
        # A fit that serves the half it has not seen no better than what is there is left out.
        if held and held["interval_score"] < before["interval_score"]:
            found[name] = patch
        report += [before, {**before, "split": "halves of the models, each by the other", **held},
                   line("in sample", patch)]
        scorer.tool.close()
    return found, report


def fit(context, folder):
    target = os.path.join(folder, "widths.json")
    if os.path.exists(target):
        os.unlink(target)  # the fit starts from what the other parts say
    found, report = fit_all(context, folder)
    if "neusight" not in found or "published" not in found:
        print("fit-timing: widths.json is not written: too few steps", flush=True)
        return
    language = found["neusight"]
    grown = {n: v for n, v in language.items() if n.startswith("band.")}
    tree = {"base": nested({**grown, **found["published"]}),
            **{part: {name: nested(language) for name in names} for part, names in with_operator_rows(folder).items()}}
    # Training in mixed precision on this chip has a fit of its own, which holds nine in ten of models left out.
    tree["chips"]["GA102"] = nested(found["timm"]) if "timm" in found else nested({n: 0.0 for n in grown})
    write_tree(target, {**header({"rows": "NeuSight (MIT); published throughput on one GPU (single figures)"}, report), **tree})
    print(json.dumps(report, indent=1), flush=True)
