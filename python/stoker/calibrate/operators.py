"""Builds the calls that are timed on a CPU: ATen operators as PyTorch dispatches them in training, without autograd."""

from __future__ import annotations

import math

import torch

from .operands import Cut, Pool
from .spec import Spec

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MOST_SETS = 512          # sets of operands that a cold operator goes round
# Kinds whose operands take time or memory of their own to make: one set, whose caches are emptied as all others' are.
_ONE_SET = ("attention", "pooling", "gather", "copy", "fill")
COLD_LEAST = 256 << 10   # bytes of an operand from which on cold rows mean anything: less lies in a core's cache for its neighbour
_TINY = 1e-9             # factor of in-place sums: the pool's numbers stay what they are
_EPSILON = 1e-5
aten = torch.ops.aten


class Call:
    """`function(*sets[i])`, over and over."""

    def __init__(self, function, sets: list, operand_bytes: int):
        self.function, self.sets, self.operand_bytes = function, sets, operand_bytes


# -- element-wise ----------------------------------------------------------------------------------------------------

# name: (overload, tensors of the full size that are read, what follows them)
ELEMENTWISE = {
    "add": (aten.add.Tensor, 2, ()), "sub": (aten.sub.Tensor, 2, ()), "mul": (aten.mul.Tensor, 2, ()),
    "div": (aten.div.Tensor, 2, ()), "neg": (aten.neg.default, 1, ()), "rsub": (aten.rsub.Scalar, 1, (1.0,)),
    "pow": (aten.pow.Tensor_Scalar, 1, (2.0,)), "exp": (aten.exp.default, 1, ()),
    "sqrt": (aten.sqrt.default, 1, ()), "rsqrt": (aten.rsqrt.default, 1, ()),
    "relu": (aten.relu.default, 1, ()), "relu_": (aten.relu_.default, 1, ()),
    "threshold_backward": (aten.threshold_backward.default, 2, (0,)),
    "hardtanh": (aten.hardtanh.default, 1, (0.0, 6.0)), "hardtanh_": (aten.hardtanh_.default, 1, (0.0, 6.0)),
    "hardtanh_backward": (aten.hardtanh_backward.default, 2, (0.0, 6.0)),
    "gelu": (aten.gelu.default, 1, ()), "gelu_backward": (aten.gelu_backward.default, 2, ()),
    "silu": (aten.silu.default, 1, ()), "silu_": (aten.silu_.default, 1, ()),
    "silu_backward": (aten.silu_backward.default, 2, ()),
    "hardswish": (aten.hardswish.default, 1, ()), "hardswish_": (aten.hardswish_.default, 1, ()),
    "hardswish_backward": (aten.hardswish_backward.default, 2, ()),
    "hardsigmoid": (aten.hardsigmoid.default, 1, ()), "hardsigmoid_backward": (aten.hardsigmoid_backward.default, 2, ()),
    "hardsigmoid_": (aten.hardsigmoid_.default, 1, ()),
    "sigmoid_": (aten.sigmoid_.default, 1, ()), "tanh_": (aten.tanh_.default, 1, ()),
    "sigmoid": (aten.sigmoid.default, 1, ()), "sigmoid_backward": (aten.sigmoid_backward.default, 2, ()),
    "tanh": (aten.tanh.default, 1, ()), "tanh_backward": (aten.tanh_backward.default, 2, ()),
    "leaky_relu": (aten.leaky_relu.default, 1, (0.1,)),
    "leaky_relu_backward": (aten.leaky_relu_backward.default, 2, (0.1, False)),
    "elu": (aten.elu.default, 1, ()),
    # In place: dropout's scaling, residual sums, and what optimizers do to one tensor after the other.
    "div_": (aten.div_.Tensor, 1, (1.0,)), "mul_": (aten.mul_.Tensor, 1, (1.0,)),
    "add_": (aten.add_.Tensor, 2, ()), "lerp_": (aten.lerp_.Scalar, 2, (_TINY,)),
    "addcmul_": (aten.addcmul_.default, 2, None), "addcdiv_": (aten.addcdiv_.default, 3, None),
    "sqrt_": (aten.sqrt_.default, 1, ()),
}
_OVERWRITTEN = ("hardswish_", "hardsigmoid_", "sigmoid_", "silu_", "sqrt_", "tanh_")  # would wear the pool's numbers down


def _elementwise(wanted: Spec, cut: Cut) -> tuple:
    overload, count, more = ELEMENTWISE[wanted.function]
    elements = wanted.size("elements")
    function, name = overload, wanted.function
    if wanted.dims and count == 2:  # the second operand is broadcast: one number a channel
        batch, channels, inner = wanted.dims
        return function, (cut(batch, channels, inner), cut(1, channels, 1))
    tensors = tuple(cut(elements) for _ in range(count))
    if name in _OVERWRITTEN:
        tensors = (cut.own(elements, value=0.0), *tensors[1:])
    if name == "add_":
        return _add_scaled, tensors
    if name == "addcmul_":
        return _addcmul_scaled, (tensors[0], tensors[1], tensors[1])
    if name == "addcdiv_":
        return _addcdiv_scaled, tensors
    return function, (*tensors, *more)


def _add_scaled(x, y, add=aten.add_.Tensor):
    return add(x, y, alpha=_TINY)


def _addcmul_scaled(x, y, z, addcmul=aten.addcmul_.default):
    return addcmul(x, y, z, value=_TINY)


def _addcdiv_scaled(x, y, z, addcdiv=aten.addcdiv_.default):
    return addcdiv(x, y, z, value=_TINY)


# -- products and convolutions ---------------------------------------------------------------------------------------


def _matrix(cut, rows, columns, transposed, batch=0):
    lead = (batch,) if batch else ()
    return cut(*lead, columns, rows).transpose(-1, -2) if transposed else cut(*lead, rows, columns)


def _gemm(wanted: Spec, cut: Cut) -> tuple:
    m, n, k = (wanted.size(name) for name in "mnk")
    batch = wanted.size("batch", 1) if wanted.function in ("bmm", "baddbmm") else 0
    left = _matrix(cut, m, k, wanted.size("transpose_a"), batch)
    right = _matrix(cut, k, n, wanted.size("transpose_b"), batch)
    if wanted.function == "addmm":
        return aten.addmm.default, (cut(n), left, right)
    if wanted.function == "baddbmm":
        return aten.baddbmm.default, (cut(batch, m, n), left, right)
    return {"mm": aten.mm.default, "bmm": aten.bmm.default}[wanted.function], (left, right)


def sides_of(wanted: Spec) -> tuple:
    """Height and width of a convolution's result."""
    reach = wanted.size("dilation", 1) * (wanted.size("kernel") - 1) + 1
    return tuple((wanted.size(name) + 2 * wanted.size("padding") - reach) // wanted.size("stride", 1) + 1
                 for name in ("height", "width"))


def _picture(cut, batch, channels, height, width, channels_last):
    if channels_last:
        return cut(batch, height, width, channels).permute(0, 3, 1, 2)
    return cut(batch, channels, height, width)


def _convolution(wanted: Spec, cut: Cut) -> tuple:
    batch, inputs, outputs = (wanted.size(name) for name in ("batch", "in_channels", "out_channels"))
    groups, kernel, last = wanted.size("groups", 1), wanted.size("kernel"), wanted.size("channels_last")
    x = _picture(cut, batch, inputs, wanted.size("height"), wanted.size("width"), last)
    weight = _picture(cut, outputs, inputs // groups, kernel, kernel, last)
    stride, padding, dilation = ([wanted.size(name, absent)] * 2 for name, absent in
                                 (("stride", 1), ("padding", 0), ("dilation", 1)))
    window = (stride, padding, dilation, False, [0, 0], groups)
    if wanted.pass_ == "forward":
        return aten.convolution.default, (x, weight, None, *window)
    gradient = _picture(cut, batch, outputs, *sides_of(wanted), last)
    mask = [wanted.pass_ == "backward_input", wanted.pass_ == "backward_weight", False]
    return aten.convolution_backward.default, (gradient, x, weight, None, *window, mask)


def _attention(wanted: Spec, cut: Cut) -> tuple:
    batch, heads, width = (wanted.size(name) for name in ("batch", "heads", "head_dim"))
    queries, keys, causal = wanted.size("query_length"), wanted.size("key_length"), bool(wanted.size("causal"))

    def operand(length):  # as a projection of (batch, length, heads x width) leaves it
        return cut(batch, length, heads, width).transpose(1, 2)

    q, k, v = operand(queries), operand(keys), operand(keys)
    forward = aten._scaled_dot_product_flash_attention_for_cpu.default
    if wanted.pass_ == "forward":
        return forward, (q, k, v, 0.0, causal)
    out, logsumexp = forward(q, k, v, 0.0, causal)
    return (aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
            (operand(queries), q, k, v, out, logsumexp, 0.0, causal))


# -- norms, softmax, losses ------------------------------------------------------------------------------------------


def _batch_norm(wanted: Spec, cut: Cut) -> tuple:
    batch, channels, inner = wanted.dims or _split(wanted.size("elements"), wanted.size("channels", 64))
    x = cut(batch, channels, inner)
    weight, bias, mean, variance = (cut.own(channels, dtype=torch.float32) for _ in range(4))
    if wanted.pass_ == "forward":
        return aten.native_batch_norm.default, (x, weight, bias, mean, variance, True, 0.1, _EPSILON)
    return (aten.native_batch_norm_backward.default,
            (cut(batch, channels, inner), x, weight, mean, variance, mean.clone(), variance.clone(), True, _EPSILON,
             [True, True, True]))


def _split(elements: int, channels: int) -> tuple:
    """(batch, channels, inner) of so many elements."""
    inner = max(1, elements // channels)
    batch = next(b for b in (8, 4, 2, 1) if inner % b == 0)
    return batch, channels, inner // batch


def _layer_norm(wanted: Spec, cut: Cut) -> tuple:
    rows, width = wanted.size("rows"), wanted.size("width")
    x, weight, bias = cut(rows, width), cut(width), cut(width)
    if wanted.pass_ == "forward":
        return aten.native_layer_norm.default, (x, [width], weight, bias, _EPSILON)
    mean, deviation = cut.own(rows, 1), cut.own(rows, 1)
    return (aten.native_layer_norm_backward.default,
            (cut(rows, width), x, [width], mean, deviation, weight, bias, [True, True, True]))


def _softmax(wanted: Spec, cut: Cut) -> tuple:
    shape = wanted.size("rows"), wanted.size("width")
    log = "_log" in wanted.function
    if wanted.pass_ == "forward":
        return (aten._log_softmax.default if log else aten._softmax.default), (cut(*shape), -1, False)
    backward = aten._log_softmax_backward_data.default if log else aten._softmax_backward_data.default
    return backward, (cut(*shape), cut(*shape), -1, cut.dtype)


def _loss(wanted: Spec, cut: Cut) -> tuple:
    rows, classes = wanted.dims
    target = torch.arange(rows) * 7919 % classes  # a prime step: neighbours are no neighbours in memory
    if wanted.function == "nll_loss_forward":
        return aten.nll_loss_forward.default, (cut(rows, classes), target, None, 1, -100)
    return (aten.nll_loss_backward.default,
            (cut.own(), cut(rows, classes), target, None, 1, -100, cut.own(value=float(rows))))


def _reduction(wanted: Spec, cut: Cut) -> tuple:
    if wanted.function.startswith("nll_loss"):
        return _loss(wanted, cut)
    elements = wanted.size("elements")
    if wanted.function == "mean":  # over the area of each channel
        inner = wanted.dims[0] if wanted.dims else 49
        return aten.mean.dim, (cut(elements // inner, inner), [-1])
    if wanted.function == "linalg_vector_norm":
        return aten.linalg_vector_norm.default, (cut(elements),)
    if wanted.dims:  # a bias's gradient: over all rows
        return aten.sum.dim_IntList, (cut(*wanted.dims), [0])
    return aten.sum.default, (cut(elements),)


# -- copies, gathers, pooling ----------------------------------------------------------------------------------------


def _copy(wanted: Spec, cut: Cut) -> tuple:
    elements = wanted.size("elements")
    if wanted.function == "copy_":
        return aten.copy_.default, (cut.own(elements), cut(elements))
    if wanted.function == "cat":
        outer = wanted.dims[0] if wanted.dims else 1
        half = elements // outer // 2
        return _cat, (cut(outer, half), cut(outer, half))
    if wanted.function == "stack":
        pieces = wanted.dims[0]  # the time steps of a recurrent layer
        return _stack, tuple(cut(elements // pieces) for _ in range(pieces))
    if wanted.function == "_to_copy":
        return _to_bf16, (cut(elements),)
    batch, first, second, inner = wanted.dims  # a transposed view made contiguous
    return _contiguous, (cut(batch, first, second, inner).transpose(1, 2),)


def _cat(x, y, cat=aten.cat.default):
    return cat([x, y], 1)


def _stack(*pieces, stack=aten.stack.default):
    return stack(pieces)


def _to_bf16(x, to=aten._to_copy.default):
    return to(x, dtype=torch.bfloat16)


def _contiguous(x, clone=aten.clone.default):
    return clone(x, memory_format=torch.contiguous_format)


def _gather(wanted: Spec, cut: Cut) -> tuple:
    vocabulary, width, count = wanted.dims
    ids = torch.arange(count) * 7919 % vocabulary
    if wanted.function == "embedding":
        return aten.embedding.default, (cut(vocabulary, width), ids)
    return aten.embedding_dense_backward.default, (cut(count, width), ids, vocabulary, -1, False)


def _fill(wanted: Spec, cut: Cut) -> tuple:
    target = cut.own(wanted.size("elements"))
    return {"zero_": (aten.zero_.default, (target,)), "fill_": (aten.fill_.Scalar, (target, 0.5)),
            "bernoulli_": (aten.bernoulli_.float, (target, 0.9))}[wanted.function]


def _pooling(wanted: Spec, cut: Cut) -> tuple:
    batch, channels, side, padding = wanted.dims
    window = [wanted.size("kernel")] * 2, [wanted.size("stride", 1)] * 2, [padding] * 2
    x = cut(batch, channels, side, side)
    out = (side + 2 * padding - wanted.size("kernel")) // wanted.size("stride", 1) + 1
    if wanted.function == "max_pool2d_with_indices":
        return aten.max_pool2d_with_indices.default, (x, *window)
    if wanted.function == "avg_pool2d":
        return aten.avg_pool2d.default, (x, *window)
    if wanted.function == "avg_pool2d_backward":
        return aten.avg_pool2d_backward.default, (cut(batch, channels, out, out), x, *window, False, True, None)
    _, indices = aten.max_pool2d_with_indices.default(x, *window)
    return (aten.max_pool2d_with_indices_backward.default,
            (cut(batch, channels, out, out), x, *window, [1, 1], False, indices))


BUILDERS = {"elementwise": _elementwise, "gemm": _gemm, "convolution": _convolution, "attention": _attention,
            "batch_norm": _batch_norm, "layer_norm": _layer_norm, "softmax": _softmax, "reduction": _reduction,
            "copy": _copy, "gather": _gather, "fill": _fill, "pooling": _pooling}


def build(wanted: Spec, pool: Pool) -> Call:
    """The call with its operands: one set when warm, else as many as it takes to go round the pool."""
    dtype = DTYPES[wanted.precision]
    make = BUILDERS[wanted.kind]
    cut = Cut(pool, dtype)
    function, arguments = make(wanted, cut)
    footprint = cut.used * dtype.itemsize
    sets = [arguments]
    if not wanted.warm and footprint and wanted.kind not in _ONE_SET:
        whole = pool.values(dtype).numel()
        step = max(cut.used, whole // MOST_SETS)
        for offset in range(step, whole - cut.used + 1, step):
            sets.append(make(wanted, Cut(pool, dtype, offset))[1])
    return Call(function, sets, footprint)


def flops_of(wanted: Spec) -> float:
    """Arithmetic of products, convolutions and attention; 0 of what moves bytes."""
    size = wanted.size
    if wanted.kind == "gemm":
        return 2.0 * size("batch", 1) * size("m") * size("n") * size("k")
    if wanted.kind == "convolution":
        taps = size("in_channels") // size("groups", 1) * size("kernel") ** 2
        return 2.0 * size("batch") * size("out_channels") * math.prod(sides_of(wanted)) * taps
    if wanted.kind == "attention":
        products = 4.0 if wanted.pass_ == "forward" else 10.0
        pairs = size("query_length") * size("key_length") / (2 if size("causal") else 1)
        return products * size("batch") * size("heads") * size("head_dim") * pairs
    return 0.0
