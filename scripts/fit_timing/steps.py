"""Class efficiencies from whole training steps -> steps.json."""
import json
import math
import os
import statistics

import numpy

from .common import Tool, coverage, descend, errors, header, nested, read_csv, write_tree
from .step_kernels import KernelTable, fit_efficiencies


class StepRows:
    """Rows of timing_steps by group, with the measured time and the model they belong to."""

    def __init__(self, context):
        self.context, self.lines, self.times, self.models, self.parameters = context, {}, {}, {}, {}
        self.files = sorted(os.listdir(context.steps))
        self.missing = set()

    def add(self, group, stem, model, gpu, batch, precision, nhwc, how, nanoseconds, millions=None):
        if not self.context.sees(gpu):
            return
        found = [f for f in self.files if f.startswith(stem + ("" if stem.endswith("_") else "-torch")) and
                 f.endswith(".step.gz")]
        if not found:
            self.missing.add(stem)
            return
        path = os.path.join(self.context.steps, found[0])
        for table, value in ((self.lines, f"{path} {gpu} {batch} {precision} {nhwc} 1 0 {how}"), (self.models, model),
                             (self.times, nanoseconds), (self.parameters, millions)):
            table.setdefault(group, []).append(value)

    def keep(self, group, indices):
        for table in (self.lines, self.models, self.times, self.parameters):
            table[group] = [table[group][i] for i in indices]


# The bench's captures of SQuAD fine-tuning (bench/accuracy/time/lambda.cc).
BERT_STEMS = {half: f"hf_models.py_question_answering-{'fp16' if half else 'fp32'}-native-seq_len384-attention__eager_-shape_"
              for half in (False, True)}
INPUT_BOUND = 1.1  # half precision that is not this much faster than full shows something else than the GPU


def published_rates(context):
    """((gpu, model, precision, batch), median samples/s over machines), one GPU. Batches that are not stated are those
    of the largest class of memory that the GPU has, as the scripts choose them."""
    memory = {r["gpu"]: float(r["mem_gib"] or 0) for r in read_csv(context.data + "/gpus.csv")}
    rows = [r for r in read_csv(context.data + "/lambda_throughput.csv")
            if r["model"] in ("resnet50", "bert_base_squad") and r["gpus"] == "1" and r["gpu"] and not r["flag"]]
    stated = {}
    for r in rows:
        if r["batch_total"]:
            stated.setdefault((r["model"], r["precision"]), {})[memory[r["gpu"]]] = int(float(r["batch_total"]))
    rates = {}
    for r in rows:
        batches = stated.get((r["model"], r["precision"]), {})
        batch = int(float(r["batch_total"])) if r["batch_total"] else batches[max(m for m in batches if m <= memory[r["gpu"]])]
        rates.setdefault((r["gpu"], r["model"], r["precision"], batch), []).append(float(r["samples_per_s"]))
    medians = {key: statistics.median(values) for key, values in rates.items()}
    best = {}
    for (gpu, model, precision, _), rate in medians.items():
        best[gpu, model, precision] = max(rate, best.get((gpu, model, precision), 0))
    return [(key, rate) for key, rate in sorted(medians.items())
            if key[2] != "fp16" or rate >= INPUT_BOUND * best.get((key[0], key[1], "fp32"), 0)]


def step_rows(context):
    """Groups: timm (RTX 3090, AMP), v100 (FP32), published (eight GPUs, half precision and TF32)."""
    rows = StepRows(context)
    for r in read_csv(context.data + "/memory/timm_train_maxbatch_rtx3090.csv"):
        if r["step_time_ms"]:
            rows.add("timm", f"timm_{r['model']}-amp-fp16-{r['img_size']}-unfused", r["model"], "RTX3090", r["batch_fits"],
                     "amp-fp16", int(r["layout"] == "nhwc"), "torch1.12", float(r["step_time_ms"]) * 1e6,
                     float(r["param_count_m"]))
    for r in read_csv(context.data + "/ddp-scaling.csv"):
        if r["gpus"] == "1_no_ddp":
            rows.add("v100", f"torchvision_{r['model']}-fp32-native", r["model"], "V100-SXM2-32GB", r["batch_per_gpu"],
                     "fp32", 0, "benchmark", float(r["value"]) * 1e9)
    # Epochs of 1,281,167 pictures on one V100 in a study of CNN training (studies.csv, tables 5.3 and 5.5).
    for name, batch, seconds in (("resnet50", 160, 3546.12), ("resnet34", 256, 1681.3)):
        rows.add("v100", f"torchvision_{name}-fp32-native", name, "V100-SXM2-16GB", batch, "fp32", 0, "benchmark",
                 seconds * 1e9 * batch / 1281167)
    for (gpu, model, precision, batch), rate in published_rates(context):
        half, bert = precision == "fp16", model != "resnet50"
        as_job = ("fp16" if bert else "amp-fp16") if half else ("fp32" if gpu.startswith("V100") else "tf32")
        stem = BERT_STEMS[half] if bert else f"torchvision_resnet50-{'amp-fp16' if half else 'fp32'}-native"
        rows.add("published", stem, model, gpu, batch, as_job, 0, "benchmark", batch / rate * 1e9)
    if rows.missing:
        print(f"fit-timing: {len(rows.missing)} steps are not in {context.steps}; their rows are left out", flush=True)
    return rows


V100_CLASSES = ["convolution.compute", "convolution_input.compute", "convolution_weight.compute",
                "winograd.compute", "grouped_convolution.compute"]
# The band of GPUs with whole steps, by hand so that the band of a left-out model covers its time nine times in ten.
STEP_SPREADS = {"timm": {"spread.common": 0.1, "spread.tensor": 0.1}, "v100": {"spread.common": 0.08}}
PULL = 0.0006  # of each fitted logarithm of hundreds of rows towards its start; chosen by models left out
FEW_ROWS_PULL = 0.03
FOLDS = 5
PARAMETERS_DIFFER = 0.02  # libraries redefine names: then the step is not the one that was measured


def fold_of(model):
    return hash_of(model, 3) % FOLDS


def hash_of(text, seed):
    """As bench/accuracy/common/statistics.cc: FNV-1a of "seed:text" and the finaliser of splitmix64."""
    mask, h = (1 << 64) - 1, 0xcbf29ce484222325
    for c in f"{seed}:{text}".encode():
        h = (h ^ c) * 0x100000001b3 & mask
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9 & mask
    h = (h ^ h >> 27) * 0x94d049bb133111eb & mask
    return h ^ h >> 31


HALVES_SEED = 2  # statistics.cc: half_of


def fit_mixed_precision(context, path, start, rows):
    """Efficiencies of all classes in mixed precision, with the error of models left out in five folds."""
    table = KernelTable(context, rows.lines["timm"], path)
    known = [i for i, (p, millions) in enumerate(zip(table.parameters, rows.parameters["timm"]))
             if abs(p / 1e6 / millions - 1) <= PARAMETERS_DIFFER]
    times, models = rows.times["timm"], rows.models["timm"]
    if context.without_models is not None:
        known = [i for i in known if hash_of(models[i], HALVES_SEED) & 1 != context.without_models]
    all_names = {n: start.get(n, 0.6 if n.endswith("compute") else 0.8) for n in table.names}
    patch = fit_efficiencies(table, times, known, all_names, PULL)
    predicted = numpy.zeros(len(times))
    for fold in range(FOLDS):
        others = fit_efficiencies(table, times, [i for i in known if fold_of(models[i]) != fold], all_names, PULL)
        out = table.predict(numpy.log([others[n] for n in table.names]))
        inside = [i for i in known if fold_of(models[i]) == fold]
        predicted[inside] = out[inside]
    rows.keep("timm", known)
    return patch, errors(predicted[known].tolist(), [times[i] for i in known])


def fit_few(context, path, names, start, rows, group):
    """Class efficiencies from a few steps, with the error of models left out in five folds."""
    lines, times, models = rows.lines.get(group, []), rows.times.get(group, []), rows.models.get(group, [])
    if len(lines) < 5:
        return {}, None
    tool = Tool(context.tools + "/timing_steps", lines, path)

    def fit(used):
        def loss(patch):
            out = tool(patch)
            error = [abs(math.log(out[i] / times[i])) for i in used]
            pull = sum(math.log(patch[n] / start[n]) ** 2 for n in names)
            return sum(error) / len(error) + FEW_ROWS_PULL * pull / len(names) * 10 / max(10, len(used))
        return descend(loss, {n: start[n] for n in names}, step=0.2, least=0.03)

    patch = fit(range(len(lines)))
    all_bands = tool({**patch, **STEP_SPREADS[group]}, "bands", 2)
    predicted, measured, bands = [], [], []
    for model in sorted(set(models)):
        inside = [i for i, m in enumerate(models) if m == model]
        out = tool(fit([i for i, m in enumerate(models) if m != model]))
        predicted += [out[i] for i in inside]
        measured += [times[i] for i in inside]
        bands += [b for i in inside for b in all_bands[2 * i:2 * i + 2]]
    tool.close()
    return patch, {**errors(predicted, measured), **coverage(predicted, bands, measured)}


# GPUs whose rows of whole steps are fitted here: each is left out once (fit-timing --folds).
GPUS = ("A10", "A100-PCIe-40GB", "A100-SXM4-80GB", "B200-SXM", "H100-PCIe-80GB", "H100-SXM5-80GB", "RTX3090", "RTX4090",
        "V100-SXM2-16GB", "V100-SXM2-32GB")

# What differs between GPUs, and where it starts: a prior.
ACROSS_GPUS = {"kernel.bandwidth_exponent": 0.85}
# What goes with fits of other tables, so that neither can be moved alone. Published rates tell little of either: the loss
# moves by 1 % between exponents of 0.5 and 0.7, and energies of 10 and 12.5 pJ leave chips that were left out as far off.
HELD = {"kernel.tensor_exponent": 0.603,  # language_models.json
        "power.pj_8nm": 10.0}  # FP32 rates of the RTX 3090, to which its efficiencies are relative
ACROSS_PULL = 0.02


def fit_across_gpus(context, path, rows):
    """How tensor cores and memories of other GPUs compare with those that the efficiencies come from; with the error of
    each chip left out."""
    lines, times = rows.lines["published"], rows.times["published"]
    tool = Tool(context.tools + "/timing_steps", lines, path)
    chips = [context.chips[line.split()[1]] for line in lines]

    def fit(used):
        def loss(patch):
            out = tool(patch)
            error = [math.sqrt(math.log(out[i] / times[i]) ** 2 + 0.02 ** 2) for i in used]
            pull = sum(math.log(patch[n] / start) ** 2 for n, start in ACROSS_GPUS.items())
            return sum(error) / len(error) + ACROSS_PULL * pull
        return descend(loss, ACROSS_GPUS, step=0.2, least=0.01)

    predicted, patch = [0.0] * len(lines), fit(range(len(lines)))
    for chip in sorted(set(chips)):
        out = tool(fit([i for i, c in enumerate(chips) if c != chip]))
        for i, c in enumerate(chips):
            predicted[i] = out[i] if c == chip else predicted[i]
    tool.close()
    return patch, predicted


# Starts of what only whole steps identify; the built-in priors again (src/timing/common/coefficients.h).
PRIORS = {"tensor_convolution.compute": 0.75, "tensor_convolution_input.compute": 0.7,
          "tensor_convolution_weight.compute": 0.65, "layout_transpose.memory": 0.74, "tensor_gemm.compute": 0.8,
          "tensor_gemm_weight.compute": 0.75, "normalization.memory": 0.8, "normalization_backward.memory": 0.75,
          "elementwise.memory": 0.87, "copy.memory": 0.8, "depthwise.compute": 0.25, "depthwise_nhwc.compute": 0.3,
          "depthwise_weight.compute": 1.0, "depthwise_weight_nhwc.compute": 0.1, "grouped_convolution.compute": 0.25,
          "grouped_convolution_nhwc.compute": 0.25, "softmax.memory": 0.8, "reduction.memory": 0.75,
          "pooling.memory": 0.7, "memory_efficient_attention.compute": 0.4, "convolution.compute": 0.7,
          "convolution_input.compute": 0.65, "convolution_weight.compute": 0.6, "winograd.compute": 0.75}
PROVENANCE = {
    "steps": "timm benchmark results (Apache-2.0) on an RTX 3090; PyTorch's DDP benchmark (BSD-3), V100; "
             "two epochs published in a thesis on CNN training, V100",
    "across_gpus": "published throughput of ResNet-50 and BERT base on one GPU of eight kinds (no licence file: single "
                   "figures, not shipped)",
}


def flat(node):
    return {f"{group}.{key}": value for group, keys in node.get("classes", {}).items() for key, value in keys.items()}


def fit(context, folder):
    """Writes steps.json into `folder`, which holds operators.json: efficiencies that only whole steps identify."""
    path, report, provenance = os.path.join(folder, "steps.json"), [], dict(PROVENANCE)
    with open(os.path.join(folder, "operators.json")) as file:
        operators = json.load(file)
    known = flat(operators["base"])
    base, chips, gpus = dict(HELD), {}, {}

    def write():
        write_tree(path, {**header(provenance, report), "base": nested(base),
                          "chips": {c: {"basis": f"training steps timed on the chip {c}, not on this machine", **nested(p)}
                                    for c, p in sorted(chips.items())},
                          "gpus": {g: nested(p) for g, p in sorted(gpus.items())}})

    rows = step_rows(context)
    start = {**PRIORS, **known}
    write()
    if "timm" in rows.lines:
        patch, error = fit_mixed_precision(context, folder, start, rows)
        report.append({"measure": "steps/timm", "gpu": "RTX3090", "split": "models left out", **error})
        print(report[-1], flush=True)
        base.update({k: v for k, v in patch.items() if k not in known and not k.startswith("kernel.")})
        chips["GA102"] = {**patch, **STEP_SPREADS["timm"]}
    write()
    start = {**PRIORS, **known, **base, **flat(operators["chips"].get("GV100", {}))}
    patch, error = fit_few(context, folder, V100_CLASSES, {n: start[n] for n in V100_CLASSES}, rows, "v100")
    if error:
        report.append({"measure": "steps/fp32", "gpu": "V100", "split": "models left out", **error})
        print(report[-1], flush=True)
        chips["GV100"] = gpus["V100-PCIe-32GB"] = {**patch, **STEP_SPREADS["v100"]}
        # No other GPU has FP32 backward convolutions: relative to the forward ones here.
        for name in ("convolution_input.compute", "convolution_weight.compute"):
            base[name] = known["convolution.compute"] * patch[name] / patch["convolution.compute"]
    provenance["rows_used"] = {g: len(rows.lines[g]) for g in ("timm", "v100", "published") if g in rows.lines}
    provenance["step_files"] = len({line.split()[0] for g in ("timm", "v100", "published") for line in rows.lines.get(g, [])})
    write()
    if rows.lines.get("published"):
        patch, predicted = fit_across_gpus(context, folder, rows)
        base.update(patch)
        report.append({"measure": "steps/published", "gpu": "all", "split": "chip left out",
                       **errors(predicted, rows.times["published"])})
        print(report[-1], patch, flush=True)
    write()
