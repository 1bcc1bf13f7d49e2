"""Class efficiencies from whole training steps -> steps.json."""
import json
import math
import os

from .common import Tool, coverage, descend, errors, header, nested, read_csv, write_tree


def step_rows(context):
    """(group, row of timing_steps, measured ns). Groups are fitted or only scored, see fit_steps."""
    def step(name):
        path = os.path.join(context.steps, name + ".step.gz")
        return path if os.path.exists(path) else None

    rows, missing = [], set()

    def add(group, name, gpu, batch, precision, nhwc, nanoseconds):
        if not context.sees(gpu):
            return
        path = step(name)
        if path is None:
            missing.add(name)
            return
        rows.append((group, f"{path} {gpu} {batch} {precision} {nhwc} 1 0", nanoseconds))

    for r in read_csv(context.data + "/memory/timm_train_maxbatch_rtx3090.csv"):
        add("rtx3090", "timm-" + r["model"], "RTX3090", r["batch_fits"], "amp-fp16", int(r["layout"] == "nhwc"),
            float(r["step_time_ms"]) * 1e6)
    for r in read_csv(context.data + "/ddp-scaling.csv"):
        if r["gpus"] == "1_no_ddp":
            add("v100", r["model"], "V100-SXM2-32GB", r["batch_per_gpu"], "fp32", 0, float(r["value"]) * 1e9)
    # Epochs of 1,281,167 pictures on one V100 in a study of CNN training (studies.csv, tables 5.3 and 5.5).
    for name, batch, seconds in (("resnet50", 160, 3546.12), ("resnet34", 256, 1681.3)):
        add("v100", name, "V100-SXM2-16GB", batch, "fp32", 0, seconds * 1e9 * batch / 1281167)
    for r in read_csv(context.data + "/lambda_throughput.csv"):
        if r["model"] == "resnet50" and r["gpus"] == "1" and r["gpu"] and r["batch_total"] and not r["flag"]:
            batch = int(float(r["batch_total"]))
            time = batch / float(r["samples_per_s"]) * 1e9
            tf32 = r["gpu"] != "V100-SXM2-16GB"
            if r["precision"] == "fp16":
                add("published", "resnet50-amp-fp16", r["gpu"], batch, "amp-fp16", 0, time)
            else:
                add("published-fp32", "resnet50", r["gpu"], batch, "tf32" if tf32 else "fp32", 0, time)
    if missing:
        print(f"fit-timing: {len(missing)} steps are not in {context.steps}; their rows are left out", flush=True)
    return rows


# Tensor-core convolutions and the layers around them, from mixed-precision steps on one GPU.
STEP_CLASSES = ["tensor_convolution.compute", "tensor_convolution_input.compute", "tensor_convolution_weight.compute",
                "layout_transpose.memory", "tensor_gemm.compute", "tensor_gemm_weight.compute",
                "normalization.memory", "normalization_backward.memory", "elementwise.memory", "copy.memory",
                "depthwise.compute", "depthwise_nhwc.compute", "depthwise_weight.compute",
                "depthwise_weight_nhwc.compute", "grouped_convolution.compute", "grouped_convolution_nhwc.compute",
                "softmax.memory", "reduction.memory", "pooling.memory", "memory_efficient_attention.compute"]
V100_CLASSES = ["convolution.compute", "convolution_input.compute", "convolution_weight.compute",
                "winograd.compute", "grouped_convolution.compute"]
# Of GPUs with whole steps, by hand so that the band of a left-out model covers its time nine times in ten.
STEP_SPREADS = {"rtx3090": {"spread.common": 0.1, "spread.tensor": 0.1}, "v100": {"spread.common": 0.08}}
PULL = 0.03  # of each fitted logarithm towards its start: few rows, many classes


def fit_steps(context, path, names, start, rows, group):
    """Class efficiencies from whole steps, with the error of models left out in five folds."""
    chosen = [(line, time) for g, line, time in rows if g == group]
    if len(chosen) < 5:
        return {}, None
    tool = Tool(context.tools + "/timing_steps", [line for line, _ in chosen], path)
    models = sorted({line.split()[0] for line, _ in chosen})
    folds = [{m for i, m in enumerate(models) if i % 5 == f} for f in range(min(5, len(models)))]

    def fit(used):
        def loss(patch):
            out = tool(patch)
            error = [abs(math.log(out[i] / chosen[i][1])) for i in used]
            pull = sum(math.log(patch[n] / start[n]) ** 2 for n in names)
            return sum(error) / len(error) + PULL * pull / len(names) * 10 / max(10, len(used))
        return descend(loss, {n: start[n] for n in names}, step=0.2, least=0.03)

    patch = fit(range(len(chosen)))
    all_bands = tool({**patch, **STEP_SPREADS[group]}, "bands", 2)
    predicted, measured, bands = [], [], []
    for fold in folds:
        inside = [i for i, (line, _) in enumerate(chosen) if line.split()[0] in fold]
        outside = [i for i in range(len(chosen)) if i not in inside]
        out = tool(fit(outside))
        predicted += [out[i] for i in inside]
        measured += [chosen[i][1] for i in inside]
        bands += [b for i in inside for b in all_bands[2 * i:2 * i + 2]]
    final = tool(patch)
    for (line, time), p in zip(chosen, final):
        print("  ", os.path.basename(line.split()[0]), line.split()[1:5], f"{time / 1e6:.1f} ms, {p / time - 1:+.1%}")
    tool.close()
    return patch, {**errors(predicted, measured), **coverage(predicted, bands, measured)}


# Starts of what only whole steps identify; the built-in priors again (src/timing/coefficients.cc).
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
    "scored_only": "published ResNet-50 throughput, 8 GPUs; decides only that TF32 nchw transposes half its activations",
}


def flat(node):
    return {f"{group}.{key}": value for group, keys in node.get("classes", {}).items() for key, value in keys.items()}


def fit(context, folder):
    """Writes steps.json into `folder`, which holds operators.json: efficiencies that only whole steps identify."""
    path, report, provenance = os.path.join(folder, "steps.json"), [], dict(PROVENANCE)
    with open(os.path.join(folder, "operators.json")) as file:
        operators = json.load(file)
    known = flat(operators["base"])
    base, chips, gpus = {}, {}, {}

    def write():
        write_tree(path, {**header(provenance, report), "base": nested(base),
                          "chips": {c: {"basis": f"{c} training steps measured elsewhere", **nested(p)}
                                    for c, p in sorted(chips.items())},
                          "gpus": {g: nested(p) for g, p in sorted(gpus.items())}})

    rows = step_rows(context)
    provenance["step_files"] = sorted({os.path.basename(line.split()[0])[:-len(".step.gz")] for _, line, _ in rows})
    write()
    start = {**PRIORS, **known}
    patch, error = fit_steps(context, folder, STEP_CLASSES, {n: start[n] for n in STEP_CLASSES}, rows, "rtx3090")
    if error:
        report.append({"measure": "steps/timm", "gpu": "RTX3090", "split": "models left out", **error})
        base.update({k: v for k, v in patch.items() if k not in known})  # classes that no operator row knows
        chips["GA102"] = {**patch, **STEP_SPREADS["rtx3090"]}
    write()
    start = {**PRIORS, **known, **base, **flat(operators["chips"].get("GV100", {}))}
    patch, error = fit_steps(context, folder, V100_CLASSES, {n: start[n] for n in V100_CLASSES}, rows, "v100")
    if error:
        report.append({"measure": "steps/fp32", "gpu": "V100", "split": "models left out", **error})
        chips["GV100"] = gpus["V100-PCIe-32GB"] = {**patch, **STEP_SPREADS["v100"]}
        # No other GPU has FP32 backward convolutions: relative to the forward ones here.
        for name in ("convolution_input.compute", "convolution_weight.compute"):
            base[name] = known["convolution.compute"] * patch[name] / patch["convolution.compute"]
    write()
    for group in ("published", "published-fp32"):
        chosen = [(line, time) for g, line, time in rows if g == group]
        if chosen:
            tool = Tool(context.tools + "/timing_steps", [line for line, _ in chosen], folder)
            out, times = tool({}), [t for _, t in chosen]
            report.append({"measure": f"steps/{group}", "gpu": "all", "split": "never fitted",
                           **errors(out, times), **coverage(out, tool({}, "bands", 2), times)})
            tool.close()
    write()
