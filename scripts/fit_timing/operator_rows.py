"""NeuSight's single operators in FP32 as kernels that timing_rows reads, with what launching them cost.

Each time is that of one call on an idle GPU between two events. It never falls below what the host needs to issue the
call (the floor, by host and operator); beyond, it is the kernel's own time and a gap: the part of the issue that the
kernel waits for. T = max(floor, gap + kernel). On all hosts the gap is about half of the floor.
"""
import itertools
import math
import os
import statistics

from .common import chips, read_csv

# Floors of `add` by host, microseconds, and of other operators relative to it: medians of the smallest rows. H100 and
# L4 have no small rows; they take what their larger ones leave.
HOST_FLOOR_US = {"A100-PCIe-40GB": 26.5, "A100-PCIe-80GB": 26.5, "V100-PCIe-32GB": 32.4, "P100-PCIe-16GB": 45.0,
                 "P4": 26.3, "MI100": 17.0, "H100-SXM5-80GB": 20.0, "L4": 20.0}
OPERATOR_FLOOR = {"add": 1.0, "mul": 1.0, "div": 1.0, "pow": 1.02, "tanh": 0.98, "addu": 1.17, "mulu": 1.17,
                  "divu": 1.17, "powu": 1.12, "relu": 1.2, "gelu": 1.15, "softmax": 1.27, "ln": 1.8, "bmm": 1.18,
                  "linear": 2.0, "conv": 2.0, "traced": 0.3}
GAP = 0.55  # of the floor
# What a convolution's row holds besides its kernels: from nothing up to so many microseconds, a time that a shape has on
# all four GPUs alike (correlation 0.95 to 0.99 where kernels are short) up to a factor of the GPU. Nothing about a shape
# tells it: shapes within 5 % of each other share none. The spans are those of even distributions whose covariances are
# those of the GPUs' residuals, of 252 shapes with kernels below 120 us.
OFFSET_US = {"A100-PCIe-80GB": 300.0, "V100-PCIe-32GB": 275.0, "P100-PCIe-16GB": 790.0, "P4": 740.0}
SMALL = 1500  # ns by the plain rules: below it a row shows the floor alone
CHIPS = chips()
CLASS = {"ln": "normalization", "softmax": "softmax"}  # others by the names of timing_rows
KERNEL = "fp32 f32 forward"  # unit, dtype and phase of all these rows
POW_FLOPS = 16  # per element, as the lowering has it


def offset_span(row):
    """The largest offset of a row, in ns."""
    return 1e3 * OFFSET_US.get(row.gpu, 0.0) if row.operator == "conv" else 0.0


def with_offset(time, span):
    """The forecast of a time to which something between nothing and `span`, evenly, was added: the mean relative error is
    least at the geometric mean of the ends."""
    return (time * (time + span)) ** 0.5


class Row:
    __slots__ = ("gpu", "operator", "text", "time")

    def __init__(self, gpu, operator, text, time):
        self.gpu, self.operator, self.text, self.time = gpu, operator, text, time


def gemm_rows(data):
    for r in read_csv(data + "/ops-neusight-gemm.csv.gz"):
        if r["dtype"] != "fp32":
            continue
        b, m, n, k = (int(float(r[x])) for x in "BMNK")  # the table's N is contracted
        if r["op"] == "bmm":
            read, shape = b * (m * n + n * k), f"gemm {b} {m} {k} {n} 0 0"
        else:
            read, shape = b * m * n + n * k + k, f"gemm 1 {b * m} {k} {n} 0 1"
        written = b * m * k
        yield Row(r["gpu"], r["op"], f"{r['gpu']} gemm {KERNEL} {2 * b * m * n * k} {4 * read} {4 * written} "
                  f"{written} {shape}", float(r["time_ms"]) * 1e6)


def vector_rows(data, reductions):
    """`reductions`: softmax and layer norm; else what is element-wise."""
    for r in read_csv(data + "/ops-neusight-vec.csv.gz"):
        op = r["op"]
        if r["dtype"] != "fp32" or (op in ("softmax", "ln")) != reductions:
            continue
        rows, width = int(r["B"]), int(r["H"])
        n = rows * width
        inputs = 2 if op in ("add", "mul", "div", "pow") else 1
        flops = n * (POW_FLOPS if op.startswith("pow") else 1)
        shape = f"rows {rows} {width}" if reductions else "none"
        yield Row(r["gpu"], op, f"{r['gpu']} {CLASS.get(op, 'elementwise')} {KERNEL} {flops} "
                  f"{4 * n * inputs} {4 * n} {n} {shape}", float(r["time_ms"]) * 1e6)


def convolution_rows(data):
    for r in read_csv(data + "/ops-neusight-conv.csv.gz"):
        if r["dtype"] != "fp32":
            continue
        b, ci, co, k, side, stride, pad = (int(r[x]) for x in
                                           ("B", "Cin", "Cout", "ksize", "in_size", "stride", "pad"))
        out = (side + 2 * pad - k) // stride + 1
        yield Row(r["gpu"], r["op"], f"{r['gpu']} convolution {KERNEL} {2 * b * out * out * ci * co * k * k} "
                  f"{4 * (b * ci * side * side + ci * co * k * k)} {4 * b * co * out * out} {b * co * out * out} "
                  f"conv {b} {ci} {co} 1 {side} {side} {out} {out} {k} {stride} 0 forward", float(r["time_ms"]) * 1e6)


ADDS_UP = 0.1  # how far the operators of a trace may be from the step that they are of
LONG_MS = 0.1  # of a traced product: shorter ones show what the host takes


def product(gpu, batch, m, n, k, transposes, milliseconds):
    sizes = f"{2 * batch * m * n * k} {4 * batch * (m * k + k * n)} {4 * batch * m * n} {batch * m * n}"
    return Row(gpu, "traced", f"{gpu} gemm {KERNEL} {sizes} gemm {batch} {m} {n} {k} {transposes}", milliseconds * 1e6)


def sizes_of_product(trace):
    """(batch, m, n, k, is one of Conv1D, is of queries and keys) of a traced node; None: it is no product."""
    operands = [[int(x) for x in shape.split("x")] for shape in trace["in_shapes"].split("|") if shape]
    out = [int(x) for x in trace["out_shape"].split("x")]
    if trace["op_class"] == "BMM":
        k = operands[0][-1]
        return math.prod(out[:-2]), out[-2], out[-1], k, False, k < out[-1]
    conv1d = trace["target"] == "addmm"
    k = (operands[1] if conv1d else operands[0])[-1]
    return 1, math.prod(out[:-1]), out[-1], k, conv1d, False


def products_of(trace, forward_adds_up, backward_adds_up):
    """Products of a traced node: the forward's, and the two of the backward, of as many FLOPs each, at half of its time."""
    batch, m, n, k, conv1d, scores = sizes_of_product(trace)
    gpu, forward = trace["gpu"], float(trace["fw_ms"] or 0)
    backward = float(trace["bw_ms"] or 0) / 2
    straight = conv1d or batch > 1 and not scores  # the second operand is stored as it is multiplied
    if forward_adds_up and forward > LONG_MS:
        yield product(gpu, batch, m, n, k, "0 0" if straight else "0 1", forward)
    if backward_adds_up and backward > LONG_MS:
        yield product(gpu, batch, m, k, n, "0 1" if straight else "0 0", backward)
        yield product(gpu, batch, *((k, n) if straight or scores else (n, k)), m, "1 0", backward)


def traced_products(data):
    """Products within whole steps: the only ones of large matrices that are stored untransposed, and of gradients. Of
    traces alone whose operators add up to the step that was timed without them."""
    adds_up = {}
    for r in read_csv(os.path.join(data, "e2e-neusight.csv")):
        step = tuple(r[x] for x in ("gpu", "model", "mode", "seqlen", "batch"))
        if r["compiled"] != "0" or r["parallel"] or not r["sum_ops_fw_ms"]:
            continue
        forward = float(r["sum_ops_fw_ms"]) / float(r["fw_ms"])
        backward = (float(r["sum_ops_bw_ms"]) + float(r["sum_ops_acc_ms"] or 0)) / float(r["bw_ms"]) if r["bw_ms"] else 0
        adds_up[step] = [abs(share - 1) <= ADDS_UP for share in (forward, backward)]
    for r in read_csv(os.path.join(data, "ops-neusight-trace.csv.gz")):
        step = tuple(r[x] for x in ("gpu", "model", "mode", "seqlen", "batch"))
        if r["op_class"] in ("Linear", "BMM") and r["dtype"] == "fp32" and step in adds_up:
            yield from products_of(r, *adds_up[step])


FAMILIES = {"gemm": gemm_rows, "elementwise": lambda data: vector_rows(data, False),
            "rows": lambda data: vector_rows(data, True), "convolution": convolution_rows}
# What trees learn from besides; efficiencies of the rules are of single operators alone.
LEARNED = {**FAMILIES, "gemm": lambda data: itertools.chain(gemm_rows(data), traced_products(data))}


def floors(rows, plain):
    """Floor of each row in ns: measured by small rows of the same GPU and operator, else by ratio."""
    small = {}
    for row, seconds in zip(rows, plain):
        if seconds < SMALL:
            small.setdefault((row.gpu, row.operator), []).append(row.time)
    known = {key: statistics.median(times) for key, times in small.items() if len(times) >= 10}
    return [known.get((r.gpu, r.operator), 1e3 * HOST_FLOOR_US[r.gpu] * OPERATOR_FLOOR[r.operator]) for r in rows]
