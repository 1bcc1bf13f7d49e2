"""Efficiencies of single operators in FP32, by GPU, from NeuSight's rows -> operators.json."""
import collections
import hashlib
import os
import random
import statistics
import tempfile

from .common import Tool, descend, errors, header, log_error, nested, read_csv, write_tree

ROWS_PER_FIT = 1500
HELD_OUT_PERCENT = 15  # of the shapes, by hash
# Launch on an idle GPU, contained in every single-operator time (data README), in microseconds. A GPU that the
# README does not name takes that of its nearest relative.
ROW_FLOOR_US = {"A100-PCIe-40GB": 26, "A100-PCIe-80GB": 26, "V100-PCIe-32GB": 32, "P4": 26,
                "P100-PCIe-16GB": 45, "MI100": 17, "H100-SXM5-80GB": 20, "L4": 20}
# Power-capped cards and another vendor: fitted for themselves, kept out of the base.
OUT_OF_BASE = {"P4", "L4", "MI100"}
CHIP = {"A100-PCIe-40GB": "GA100", "A100-PCIe-80GB": "GA100", "V100-PCIe-32GB": "GV100",
        "P100-PCIe-16GB": "GP100", "H100-SXM5-80GB": "GH100"}
CLASS = {"gemm": 0, "conv": 1, "softmax": 5, "elementwise": 7}


class Rows:
    """Measured kernels of one family: row text for timing_rows, time in ns, shape hash."""

    def __init__(self):
        self.text, self.time, self.shape = [], [], []

    def add(self, text, time):
        self.text.append(text)
        self.time.append(time)
        # Without the GPU's name, so that a shape is held out on every GPU or on none.
        digest = hashlib.md5(text.split(" ", 1)[1].encode()).hexdigest()
        self.shape.append(int(digest, 16) % 100)

    def sample(self, held_out, limit=ROWS_PER_FIT):
        chosen = [i for i, s in enumerate(self.shape) if (s < HELD_OUT_PERCENT) == held_out]
        random.Random(1).shuffle(chosen)
        return sorted(chosen[:limit])


def gemm_rows(data):
    rows = collections.defaultdict(Rows)
    for r in read_csv(data + "/ops-neusight-gemm.csv.gz"):
        if r["dtype"] != "fp32":
            continue
        b, m, n, k = (int(float(r[x])) for x in "BMNK")  # the table's N is contracted
        if r["op"] == "bmm":
            read, shape = b * (m * n + n * k), f"gemm {b} {m} {k} {n} 0 0"
        else:
            read, shape = b * m * n + n * k + k, f"gemm 1 {b * m} {k} {n} 0 1"
        written = b * m * k
        rows[r["gpu"]].add(f"{r['gpu']} {CLASS['gemm']} 0 1 1 {2 * b * m * n * k} {4 * read} {4 * written} "
                           f"{written} {shape}", float(r["time_ms"]) * 1e6)
    return rows


def vector_rows(data):
    rows = collections.defaultdict(Rows)
    for r in read_csv(data + "/ops-neusight-vec.csv.gz"):
        if r["dtype"] != "fp32":
            continue
        n, op = int(r["B"]) * int(r["H"]), r["op"]
        time = float(r["time_ms"]) * 1e6
        if op == "ln":
            continue  # layer norm alone; the class is mostly batch norm, which whole steps tell
        if time < 2 * ROW_FLOOR_US[r["gpu"]] * 1e3:
            continue  # mostly launch
        inputs = 2 if op in ("add", "mul", "div", "pow") else 1
        family = {"softmax": "softmax"}.get(op, "elementwise")
        rows[r["gpu"], family].add(f"{r['gpu']} {CLASS[family]} 0 1 1 {n} {4 * n * inputs} {4 * n} {n} none", time)
    return rows


def convolution_rows(data):
    rows = collections.defaultdict(Rows)
    for r in read_csv(data + "/ops-neusight-conv.csv.gz"):
        if r["dtype"] != "fp32":
            continue
        b, ci, co, k, side, stride, pad = (int(r[x]) for x in
                                           ("B", "Cin", "Cout", "ksize", "in_size", "stride", "pad"))
        out = (side + 2 * pad - k) // stride + 1
        rows[r["gpu"]].add(
            f"{r['gpu']} {CLASS['conv']} 0 1 1 {2 * b * out * out * ci * co * k * k} "
            f"{4 * (b * ci * side * side + ci * co * k * k)} {4 * b * co * out * out} {b * co * out * out} "
            f"conv {b} {ci} {co} 1 {side} {side} {out} {out} {k} {stride} 0 0", float(r["time_ms"]) * 1e6)
    return rows


FAMILIES = {
    "gemm": {"gemm.compute": 0.85, "gemm.memory": 0.8},
    "elementwise": {"elementwise.memory": 0.87},
    "softmax": {"softmax.memory": 0.7},
    "conv": {"convolution.compute": 0.75, "winograd.compute": 0.7, "winograd.memory": 0.8},
}


def evaluate(tools, neutral, rows, indices, patch, gpu):
    tool = Tool(tools + "/timing_rows", [rows.text[i] for i in indices], neutral)
    predicted = tool({**patch, "kernel.floor_us": ROW_FLOOR_US[gpu]})
    tool.close()
    return errors(predicted, [rows.time[i] for i in indices])


def fit_operators(context, neutral, report):
    families = collections.defaultdict(dict)
    for gpu, rows in gemm_rows(context.data).items():
        families["gemm"][gpu] = rows
    for (gpu, family), rows in vector_rows(context.data).items():
        families[family][gpu] = rows
    for gpu, rows in convolution_rows(context.data).items():
        families["conv"][gpu] = rows
    fitted = collections.defaultdict(dict)  # family -> gpu -> patch
    for family, by_gpu in families.items():
        for gpu, rows in sorted(by_gpu.items()):
            train = rows.sample(held_out=False)
            if len(train) < 30 or not context.sees(gpu):
                continue
            tool = Tool(context.tools + "/timing_rows", [rows.text[i] for i in train], neutral)
            times, floor = [rows.time[i] for i in train], {"kernel.floor_us": ROW_FLOOR_US[gpu]}
            patch = descend(lambda p: log_error(tool({**p, **floor}), times), FAMILIES[family])
            tool.close()
            fitted[family][gpu] = patch
            test = rows.sample(held_out=True)
            report.append({"measure": f"operators/{family}", "gpu": gpu, "split": "unseen shapes",
                           **evaluate(context.tools, neutral, rows, test, patch, gpu)})
            print(report[-1], {k: round(v, 3) for k, v in patch.items()}, flush=True)
        for gpu in fitted[family]:
            patch = base_of(fitted[family], without=gpu)
            if patch:
                report.append({"measure": f"operators/{family}", "gpu": gpu, "split": "GPU left out",
                               **evaluate(context.tools, neutral, by_gpu[gpu], by_gpu[gpu].sample(True), patch, gpu)})
    return fitted


def base_of(by_gpu, without=None):
    """Median over the GPUs that speak for others."""
    usable = [p for g, p in sorted(by_gpu.items()) if g not in OUT_OF_BASE and g != without]
    if not usable:
        return {}
    return {name: statistics.median(p[name] for p in usable) for name in usable[0]}


# FP32 units shared with integers (128 lanes an SM) are harder to fill; no rows but power-capped ones. Prior.
ARCHITECTURES = {"ada": {"classes": {"gemm": {"compute": 0.75}}}}
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
    for chip in sorted(set(CHIP.values())):
        members = [gpus[g] for g in sorted(gpus) if CHIP.get(g) == chip]
        for name in sorted({n for m in members for n in m}):
            chips[chip][name] = statistics.median(m[name] for m in members if name in m)
    # Not identified by these rows, and said so in the documentation: caches seem to reach beyond their size.
    # Spreads are judgement: GPUs without rows, then those with rows of FP32 operators only.
    base.update({"kernel.l2_share": 1.5, "spread.common": 0.25, "spread.tensor": 0.5})
    for layer in list(gpus.values()) + list(chips.values()):
        layer["spread.common"] = 0.18
    boards = {c: "/".join(g for g in sorted(CHIP) if CHIP[g] == c) for c in chips}
    write_tree(os.path.join(folder, "operators.json"), {
        **header(PROVENANCE, report),
        "base": {"basis": "data sheet, efficiencies of other GPUs", **nested(base)}, "architectures": ARCHITECTURES,
        "chips": {c: {"basis": f"rows of {boards[c]} measured elsewhere", **nested(p)} for c, p in sorted(chips.items())},
        "gpus": {g: {"basis": f"{g} rows measured elsewhere", **nested(p)} for g, p in sorted(gpus.items())}})
