"""Which operators a model's step on the CPU needs: out of its capture, the longest first."""

from __future__ import annotations

import math
import os

from . import general
from .kinds import KINDS
from .operators import ELEMENTWISE, flops_of
from .spec import BACKWARD, Spec, spec

CAPTURE_LIMIT_S = 120.0
_FLOPS, _BYTES = 5e10, 1e10     # per second, roughly: only the order rests on them
_CALL_S = 5e-6
_DTYPES = {"f32": "fp32", "bf16": "bf16"}
# Operators of one tensor in the step of SGD with momentum and of AdamW (torch/optim, single-tensor forms).
_OPTIMIZER = ("add_", "mul_", "lerp_", "addcmul_", "sqrt", "div", "div_", "addcdiv_")
_MOST_PARAMETERS = 8            # sizes of parameters whose optimizer operators are measured
_PASSES = {kind: {name: BACKWARD if "_backward" in name else "forward" for name in names} for kind, names in KINDS.items()}
_NORMS, _ROWS, _SOFTMAXES = _PASSES["batch_norm"], _PASSES["layer_norm"], _PASSES["softmax"]
_FLASH = KINDS["attention"][0]
# As captures for the CPU have it, and those for GPUs that stand for one (docs/reference/step-file.md).
_ATTENTION = {name: name for name in (_FLASH, f"{_FLASH}_backward")}
_ATTENTION |= {"stoker::attention": _FLASH, "stoker::attention_backward": f"{_FLASH}_backward"}


def capture_here(model: str) -> dict:
    """The step file's document of a spec or a script, on fake CPU tensors; or of a file that was captured so. Runs in a child."""
    from .. import front, step_file

    if model.endswith(".py") and os.path.isfile(model):
        from ..shadow import capture, runs

        runs.warm_up(lambda text: None)
        return capture.capture(capture.Asked(script=model, arguments=[], gpu=None))
    if os.path.isfile(model) and ":" not in model:
        return step_file.read(model)
    return front.here(model, None, precision="fp32", mode="train", name=None, batch=None, options={}, fixed={},
                      say=lambda text: None, device="cpu")


def specs_of(doc: dict) -> list:
    """The specs of a captured step at its default sizes, the longest in sum first."""
    step = Step(doc)
    times: dict = {}
    for wanted in step.specs():
        key = wanted.key()
        kept, seconds = times.get(key, (wanted, 0.0))
        times[key] = kept, seconds + about_s(wanted)
    return [wanted for wanted, _ in sorted(times.values(), key=lambda item: -item[1])]


def about_s(wanted: Spec) -> float:
    elements = wanted.size("elements") or wanted.size("rows") * wanted.size("width")
    return _CALL_S + max(flops_of(wanted) / _FLOPS, 4.0 * (wanted.size("inputs", 1) + 1) * elements / _BYTES)


class Step:
    """A step file's document with its polynomials worked out."""

    def __init__(self, doc: dict):
        self._at = {d["name"]: d["default"] // d.get("unit", 1) for d in doc["dimensions"]}
        self._types = [(row[0], tuple(map(self._number, row[1])), row[2] if len(row) > 2 else None) for row in doc["types"]]
        self._names = doc["strings"]["operators"]
        self._events = [e for e in doc["events"] if e[0] == "o"]
        self._parameters = [self._types[p["type"]][1] for p in doc["parameters"] if p.get("requires_grad")]

    def _number(self, polynomial) -> int:
        if isinstance(polynomial, int):
            return polynomial
        total = 0
        for monomial, coefficient in polynomial.items():
            for factor in filter(None, monomial.split("*")):
                name, _, power = factor.partition("^")
                coefficient *= self._at[name] ** int(power or 1)
            total += coefficient
        return total

    def specs(self):
        for event in self._events:
            name = self._names[event[1]].removeprefix("aten::").partition(".")[0]
            inputs, outputs = ([self._types[number] for number in (event[at] if len(event) > at else [])[::2]] for at in (4, 5))
            yield from spec_of(name, inputs, outputs, event[6] if len(event) > 6 else {})
        by_size: dict = {}
        for shape in self._parameters:
            by_size[math.prod(shape)] = by_size.get(math.prod(shape), 0) + 1
        for size in sorted(by_size, key=lambda n: -n * by_size[n])[:_MOST_PARAMETERS]:
            for function in _OPTIMIZER:
                for _ in range(by_size[size]):
                    yield spec("elementwise", function, elements=size, inputs=ELEMENTWISE[function][1])


def spec_of(name: str, inputs: list, outputs: list, attributes: dict):
    """Zero or more specs of one operator; tensors are (dtype, shape, order). What no builder knows is passed over: rules and
    relatives of the general set tell its time."""
    if not inputs or not outputs:
        return
    precision = _DTYPES.get(outputs[0][0])
    if precision is None:
        return
    shape = outputs[0][1]
    elements = math.prod(shape)
    common = {"precision": precision}
    if elements == 0:
        return
    if name in KINDS["gemm"]:
        yield from _product(name, inputs, common)
    elif name in KINDS["convolution"]:
        yield from _convolution(name, inputs, attributes, common)
    elif name in _ATTENTION:
        yield from _attention(_ATTENTION[name], inputs, attributes, common)
    elif name in _NORMS:
        dims = inputs[0][1]
        if len(dims) >= 2:
            folded = (dims[0], dims[1], math.prod(dims[2:]))
            yield spec("batch_norm", name, elements=math.prod(dims), channels=dims[1], pass_=_NORMS[name], dims=folded, **common)
    elif name in _ROWS:
        rows = math.prod(outputs[1][1]) if name == "native_layer_norm" and len(outputs) > 1 else elements // shape[-1]
        yield spec("layer_norm", name, rows=rows, width=elements // rows, pass_=_ROWS[name], **common)
    elif name in _SOFTMAXES:
        yield spec("softmax", name, rows=elements // shape[-1], width=shape[-1], pass_=_SOFTMAXES[name], **common)
    elif name in ELEMENTWISE and outputs[0][2] != "strided":
        yield from _elementwise(name, inputs, shape, common)
    elif name == "embedding" and len(inputs[0][1]) == 2:
        (vocabulary, width), count = inputs[0][1], elements // inputs[0][1][1]
        yield spec("gather", name, elements=elements, dims=(vocabulary, width, count), **common)
    elif name == "embedding_dense_backward" and len(shape) == 2:
        vocabulary, width = shape
        moved = math.prod(inputs[0][1])
        yield spec("gather", name, elements=moved, table=elements, dims=(vocabulary, width, moved // width), **common)
    elif name in KINDS["copy"] or name in KINDS["fill"]:
        yield spec("copy" if name in KINDS["copy"] else "fill", name, elements=elements, **common)
    elif name in KINDS["pooling"]:
        yield from _pooling(name, inputs, shape, attributes, common)
    elif name in KINDS["reduction"]:
        yield from _reduction(name, inputs, outputs, common)


def _product(name, inputs, common):
    left, right = inputs[-2:]
    (m, k), n = left[1][-2:], right[1][-1]
    sizes = {"batch": left[1][0]} if len(left[1]) == 3 else {}
    sizes.update(m=m, n=n, k=k, transpose_a=_transposed(left), transpose_b=_transposed(right))
    if name in ("addmm", "baddbmm"):
        sizes["bias"] = 1
    yield spec("gemm", name, **sizes, **common)


def _transposed(tensor) -> int:
    order = tensor[2]
    return int(isinstance(order, list) and order[-1] != len(tensor[1]) - 1)


def _convolution(name, inputs, attributes, common):
    backward = name == "convolution_backward"
    x, weight = (inputs[1], inputs[2]) if backward else (inputs[0], inputs[1])
    if len(x[1]) != 4 or weight[1][2] != weight[1][3] or attributes.get("transposed"):
        return  # one- and three-dimensional ones, oblong windows
    window = {key: (attributes.get(key) or [absent])[0] for key, absent in (("stride", 1), ("padding", 0), ("dilation", 1))}
    sizes = {"batch": x[1][0], "in_channels": x[1][1], "out_channels": weight[1][0], "groups": attributes.get("groups", 1),
             "height": x[1][2], "width": x[1][3], "kernel": weight[1][2], "stride": window["stride"], "padding": window["padding"]}
    if window["dilation"] > 1:
        sizes["dilation"] = window["dilation"]
    if x[2] == [0, 2, 3, 1]:
        sizes["channels_last"] = 1
    if not backward:
        yield spec("convolution", name, **sizes, **common)
        return
    mask = attributes.get("mask", [True, True, False])
    for wanted, pass_ in zip(mask, ("backward_input", "backward_weight")):
        if wanted:
            yield spec("convolution", name, pass_=pass_, **sizes, **common)


def _pooling(name, inputs, shape, attributes, common):
    x = inputs[1][1] if name.endswith("_backward") else inputs[0][1]
    kernel, padding = attributes.get("kernel") or [0], attributes.get("padding") or [0]
    stride = attributes.get("stride") or kernel
    if len(x) == 4 and x[2] == x[3] and all(len(set(side)) == 1 for side in (kernel, stride, padding)) and kernel[0]:
        yield spec("pooling", name, elements=math.prod(shape), kernel=kernel[0], stride=stride[0], dims=(x[0], x[1], x[2], padding[0]),
                   pass_=BACKWARD if name.endswith("_backward") else "forward", **common)


def _attention(name, inputs, attributes, common):
    backward = name.endswith("_backward")
    q, k = (inputs[1], inputs[2]) if backward else (inputs[0], inputs[1])
    if len(q[1]) != 4 or attributes.get("mask_kind", "none") != "none":
        return
    (batch, heads, length, width), keys = q[1], k[1][2]
    yield spec("attention", name, batch=batch, heads=heads, query_length=length, key_length=keys, head_dim=width,
               causal=int(bool(attributes.get("causal"))), pass_=BACKWARD if backward else "forward", **common)


def _elementwise(name, inputs, shape, common):
    wanted = ELEMENTWISE[name][1]
    full = sum(t[1] == shape for t in inputs)
    elements = math.prod(shape)
    if any(t[2] == "strided" for t in inputs):
        return
    if full >= wanted:
        yield spec("elementwise", name, elements=elements, inputs=wanted, **common)
    elif name in ("add", "mul") and full == 1 and len(inputs) == 2:
        dims = _broadcast(shape, next(t[1] for t in inputs if t[1] != shape))
        if dims:
            yield spec("elementwise", name, elements=elements, inputs=1, dims=dims, **common)


def _broadcast(shape: tuple, other: tuple) -> tuple:
    """(batch, channels, inner) where an operand has one number for each channel; () where it has another form."""
    whole, count = math.prod(shape), math.prod(other)
    other = (1,) * (len(shape) - len(other)) + tuple(other)
    kept = [d for d, (size, full) in enumerate(zip(other, shape)) if size == full and full > 1]
    if not kept or kept != list(range(kept[0], kept[-1] + 1)) or count != math.prod(shape[d] for d in kept):
        return ()
    inner = math.prod(shape[kept[-1] + 1:])
    return whole // count // inner, count, inner


def _reduction(name, inputs, outputs, common):
    if name.startswith("nll_loss"):
        scores = inputs[0] if name == "nll_loss_forward" else outputs[0]
        if len(scores[1]) == 2:
            rows, classes = scores[1]
            yield spec("reduction", name, elements=rows if name == "nll_loss_forward" else rows * classes, dims=(rows, classes), **common)
        return
    shape, kept = inputs[0][1], math.prod(outputs[0][1])
    elements = math.prod(shape)
    if name == "mean":
        if kept > 1:
            yield spec("reduction", name, elements=elements, dims=(elements // kept,), **common)
    elif kept > 1 and shape[-1] == kept:
        yield spec("reduction", name, elements=elements, dims=(elements // kept, kept), **common)


def ordered(docs: list) -> list:
    """The models' operators, those of several models in alternation, then the general set."""
    found, seen = [], set()
    for wanted in [*general._in_turns([specs_of(doc) for doc in docs]), *general.everything()]:
        if wanted.key() not in seen:
            seen.add(wanted.key())
            found.append(wanted)
    return found
