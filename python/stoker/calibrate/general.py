"""The general set: which operators and sizes are measured where no model is named, most valuable first.

The operators are those that PyTorch dispatches on a CPU in training of convolution nets, transformers, recurrent nets and
perceptrons, with the usual optimizers. The sizes are no model's: drawn with a fixed seed over what such nets have, or a ladder
from a hundred elements to tens of megabytes. Ranks: 0 what every step has, in few sizes; then more sizes, then rarer operators.
"""

from __future__ import annotations

import math
import random

from .operators import COLD_LEAST, ELEMENTWISE, flops_of
from .spec import BACKWARD, Spec, spec

_SEED = 7
MOST_FLOPS = 2.5e9           # operations of the largest convolution or product: some 30 ms on one core with 512-bit vectors
LEAST_FLOPS = 2e5
# Operations up to which products and convolutions are measured cold too: some 100 us; depthwise ones take ten times as long.
COLD_FLOPS = 1e7
COLD_NUMBERS = 250_000       # or of a product's weight: a megabyte
MOST_BYTES = 48 << 20        # operands of the largest convolution

# Elements, by rank: in a core's cache and beyond all caches; between; around PyTorch's grain of 32,768, where threads begin.
LADDER = ((16384, 1048576), (2048, 131072, 4194304), (128, 32768, 65536, 524288, 2097152), (8388608, 8192, 262144))


def _ladder(most_ranks: int = 4):
    for rank, sizes in enumerate(LADDER[:most_ranks]):
        for elements in sizes:
            yield rank, elements


def _both(elements: int) -> tuple:
    """Warm, and cold where an operand is large enough for that to differ."""
    return (True, False) if 4 * elements >= COLD_LEAST else (True,)


# -- what moves bytes --------------------------------------------------------------------------------------------------

_EVERYWHERE = ("add", "add_", "mul", "mul_", "relu", "threshold_backward")
_OPTIMIZERS = ("addcmul_", "addcdiv_", "lerp_", "sqrt", "div_")
_ACTIVATIONS = ("gelu", "gelu_backward", "hardswish", "hardswish_backward", "hardsigmoid", "hardsigmoid_backward", "sigmoid",
                "sigmoid_backward", "tanh", "tanh_backward", "div")
_BROADCAST = ("add", "mul")
_COLD = ("add", "add_", "mul_", "mul", "threshold_backward", "addcmul_", "addcdiv_", "gelu", "gelu_backward", "lerp_", "sqrt", "relu",
         "hardswish", "hardswish_backward", "sigmoid_backward", "tanh_backward", "div_")


def _elementwise(function: str, elements: int, warm: bool = True) -> Spec:
    return spec("elementwise", function, elements=elements, inputs=ELEMENTWISE[function][1], warm=warm)


def elementwise():
    rare = [name for name in ELEMENTWISE if name not in _EVERYWHERE + _OPTIMIZERS + _ACTIVATIONS]
    for group, delay, ranks in ((_EVERYWHERE, 0, 4), (_OPTIMIZERS, 0, 3), (_ACTIVATIONS, 1, 3), (rare, 3, 2)):
        for rank, elements in _ladder(ranks):
            for function in group:
                yield rank + delay, _elementwise(function, elements)
    for rank, elements in ((1, 1048576), (2, 131072), (3, 4194304)):
        for function in _COLD:
            yield rank, _elementwise(function, elements, warm=False)
    for rank, (batch, channels, inner) in ((1, (8, 64, 784)), (2, (4, 256, 49)), (3, (16, 32, 3136))):
        for function in _BROADCAST:
            yield rank, spec("elementwise", function, elements=batch * channels * inner, inputs=1, dims=(batch, channels, inner))


def copies_and_fills():
    for rank, elements in _ladder(3):
        for warm in _both(elements):
            yield rank, spec("copy", "copy_", elements=elements, warm=warm)
            yield rank, spec("fill", "zero_", elements=elements, warm=warm)
        yield rank + 1, spec("fill", "bernoulli_", elements=elements)
        yield rank + 1, spec("copy", "cat", elements=elements)
        yield rank + 2, spec("fill", "fill_", elements=elements)
        yield rank + 3, spec("copy", "_to_copy", elements=elements)
    for rank, (pieces, elements) in ((2, (16, 131072)), (3, (40, 655360))):
        yield rank, spec("copy", "stack", elements=elements, dims=(pieces,))
    for rank, dims in ((0, (8, 64, 8, 32)), (1, (4, 128, 4, 16)), (1, (8, 256, 12, 64)), (2, (2, 16, 4, 16)), (3, (16, 512, 8, 64))):
        for warm in _both(math.prod(dims)):
            yield rank, spec("copy", "clone", elements=math.prod(dims), dims=dims, warm=warm)


def reductions():
    for rank, (rows, width) in ((0, (512, 256)), (0, (64, 1024)), (1, (2048, 768)), (1, (16, 128)), (2, (8192, 512)), (3, (256, 64))):
        for warm in _both(rows * width):
            yield rank, spec("reduction", "sum", elements=rows * width, dims=(rows, width), warm=warm)
    for rank, (outer, inner) in ((0, (4096, 49)), (1, (512, 196)), (2, (16384, 64)), (3, (1024, 1024))):
        yield rank, spec("reduction", "mean", elements=outer * inner, dims=(inner,))
    for rank, (rows, classes) in ((0, (32, 1000)), (1, (512, 8192)), (2, (8, 10)), (2, (1024, 2000))):
        yield rank, spec("reduction", "nll_loss_forward", elements=rows, dims=(rows, classes))
        yield rank, spec("reduction", "nll_loss_backward", elements=rows * classes, dims=(rows, classes))
    for rank, elements in _ladder(2):
        yield rank + 3, spec("reduction", "linalg_vector_norm", elements=elements)


def norms():
    shapes = ((0, (8, 64, 784)), (0, (4, 256, 196)), (1, (16, 32, 3136)), (1, (8, 512, 49)), (2, (2, 128, 784)), (2, (8, 96, 3136)),
              (2, (4, 16, 196)), (3, (16, 960, 49)), (3, (2, 24, 64)), (3, (32, 64, 3136)))
    for rank, dims in shapes:
        for warm in _both(math.prod(dims)):
            for function, pass_ in (("native_batch_norm", "forward"), ("native_batch_norm_backward", BACKWARD)):
                yield rank, spec("batch_norm", function, elements=math.prod(dims), channels=dims[1], pass_=pass_, dims=dims, warm=warm)
    for rank, (rows, width) in ((0, (512, 256)), (0, (2048, 512)), (1, (128, 768)), (1, (4096, 384)), (2, (64, 64)), (2, (8192, 768)),
                                (3, (1024, 128))):
        for warm in _both(rows * width):
            for function, pass_ in (("native_layer_norm", "forward"), ("native_layer_norm_backward", BACKWARD)):
                yield rank, spec("layer_norm", function, rows=rows, width=width, pass_=pass_, warm=warm)


def softmaxes():
    for rank, (rows, width) in ((0, (64, 1000)), (0, (1024, 128)), (1, (512, 8192)), (1, (16, 10)), (2, (8192, 64)), (2, (4096, 512)),
                                (3, (2048, 4000))):
        log = width >= 1000 or width == 10
        name, rank = ("_log_softmax", rank) if log else ("_softmax", rank + 1)
        for warm in _both(rows * width):
            yield rank, spec("softmax", name, rows=rows, width=width, warm=warm)
            yield rank, spec("softmax", f"{name}_backward_data", rows=rows, width=width, pass_=BACKWARD, warm=warm)


def gathers():
    for rank, (vocabulary, width, count) in ((0, (8000, 256, 1024)), (1, (2000, 128, 256)), (1, (30000, 384, 2048)), (2, (500, 64, 512)),
                                             (3, (16000, 512, 4096))):
        for warm in _both(vocabulary * width):
            yield rank, spec("gather", "embedding", elements=count * width, dims=(vocabulary, width, count), warm=warm)
            yield rank, spec("gather", "embedding_dense_backward", elements=count * width, table=vocabulary * width,
                             dims=(vocabulary, width, count), warm=warm)


def pools():
    # batch, channels, side, padding; window, stride
    for rank, (dims, kernel, stride) in ((0, ((8, 64, 56, 1), 3, 2)), (0, ((4, 128, 28, 0), 2, 2)), (1, ((8, 32, 112, 0), 2, 2)),
                                         (2, ((2, 256, 14, 0), 2, 2)), (3, ((16, 64, 32, 1), 3, 1))):
        batch, channels, side, padding = dims
        out = (side + 2 * padding - kernel) // stride + 1
        whole, less = batch * channels * side * side, batch * channels * out * out
        for warm in _both(whole):
            yield rank, spec("pooling", "max_pool2d_with_indices", elements=less, kernel=kernel, stride=stride, dims=dims, warm=warm)
            yield rank, spec("pooling", "max_pool2d_with_indices_backward", elements=whole, kernel=kernel, stride=stride,
                             pass_=BACKWARD, dims=dims, warm=warm)
        if padding == 0:
            yield rank + 2, spec("pooling", "avg_pool2d", elements=less, kernel=kernel, stride=stride, dims=dims)
            yield rank + 2, spec("pooling", "avg_pool2d_backward", elements=whole, kernel=kernel, stride=stride, pass_=BACKWARD,
                                 dims=dims)


# -- products ----------------------------------------------------------------------------------------------------------


def gemms():
    """Linear layers with their two gradients, from one row to thousands; batched ones as in attention."""
    layers = ((0, (256, 512, 512)), (0, (16, 1024, 2048)), (0, (1024, 384, 192)), (1, (64, 128, 64)), (1, (2048, 768, 256)),
              (1, (8, 10, 256)), (1, (512, 2048, 512)), (1, (32, 4096, 4096)), (2, (4, 512, 512)), (2, (4096, 256, 256)),
              (2, (128, 8192, 256)), (2, (16, 64, 1280)), (2, (1, 1000, 1024)), (2, (640, 320, 960)), (3, (48, 3072, 768)),
              (3, (1500, 100, 300)), (3, (2, 4096, 9216)), (3, (8192, 128, 128)), (3, (32, 32, 32)), (3, (900, 1200, 600)))
    for rank, (m, n, k) in layers:
        for warm in (True, False) if 2.0 * m * n * k >= COLD_FLOPS or n * k >= COLD_NUMBERS else (True,):
            yield rank, spec("gemm", "addmm", m=m, n=n, k=k, transpose_b=1, bias=1, warm=warm)
            yield rank, spec("gemm", "mm", m=m, n=k, k=n, warm=warm)                   # gradient of the input
            yield rank, spec("gemm", "mm", m=n, n=k, k=m, transpose_a=1, warm=warm)    # the gradient of the weight
    for rank, (batch, m, n, k) in ((1, (32, 128, 128, 32)), (2, (64, 64, 64, 64)), (2, (16, 256, 256, 64)), (3, (96, 50, 50, 64)),
                                   (3, (8, 512, 512, 64))):
        yield rank, spec("gemm", "bmm", batch=batch, m=m, n=n, k=k, transpose_b=1)
        yield rank, spec("gemm", "bmm", batch=batch, m=m, n=k, k=n)
        yield rank, spec("gemm", "bmm", batch=batch, m=n, n=k, k=m, transpose_a=1)


def attentions():
    for rank, (batch, heads, length, width, causal) in ((0, (4, 8, 128, 32, 0)), (0, (2, 4, 256, 64, 1)), (1, (8, 6, 64, 64, 0)),
                                                        (1, (4, 12, 128, 64, 1)), (2, (16, 4, 50, 48, 0)), (3, (2, 8, 512, 64, 1))):
        for suffix, pass_, warm in ((suffix, pass_, warm) for warm in (True, False)
                                    for suffix, pass_ in (("", "forward"), ("_backward", BACKWARD))):
            yield rank, spec("attention", f"_scaled_dot_product_flash_attention_for_cpu{suffix}", batch=batch, heads=heads,
                             query_length=length, key_length=length, head_dim=width, causal=causal, pass_=pass_, warm=warm)


# -- convolutions ------------------------------------------------------------------------------------------------------

_BATCHES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32)
_CHANNELS = (8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512)
_SIDES = (4, 5, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 112)


def _passes(rank: int, *, first: bool = False, **sizes):
    """A convolution's three kernels; of a net's first layer nobody wants the input's gradient."""
    yield rank, spec("convolution", "convolution", **sizes)
    for pass_ in ("backward_weight",) if first else ("backward_input", "backward_weight"):
        yield rank, spec("convolution", "convolution_backward", pass_=pass_, **sizes)


def _bytes_of(sizes: dict) -> float:
    area = sizes["height"] * sizes["width"] * sizes["batch"]
    return 4.0 * area * (sizes["in_channels"] + sizes["out_channels"] / sizes.get("stride", 1) ** 2)


def _drawn(chance: random.Random, kernel: int, groups) -> dict:
    """Sizes within the limits; `groups` is a function of the channels, or None."""
    while True:
        channels = chance.choice(_CHANNELS)
        side = chance.choice([s for s in _SIDES if s >= kernel])
        stride = 2 if side >= 8 and chance.random() < 0.25 else 1
        divided = groups(channels) if groups else 1
        outputs = channels if groups else chance.choice(_CHANNELS)
        if divided < 1 or channels % divided or outputs % divided:
            continue
        sizes = {"batch": chance.choice(_BATCHES), "in_channels": channels, "out_channels": outputs, "groups": divided,
                 "height": side, "width": side, "kernel": kernel, "stride": stride, "padding": kernel // 2}
        flops = flops_of(spec("convolution", "convolution", **sizes))
        if LEAST_FLOPS <= flops <= MOST_FLOPS and _bytes_of(sizes) <= MOST_BYTES:
            return sizes


# (kernel, groups of so many channels, how many in ranks 0, 1, 2, 3)
_FAMILIES = (("3x3", 3, None, (5, 7, 14, 16)), ("1x1", 1, None, (4, 6, 14, 16)),
             ("depthwise 3x3", 3, lambda channels: channels, (2, 4, 6, 6)),
             ("depthwise 5x5", 5, lambda channels: channels, (1, 2, 4, 4)),
             ("5x5", 5, None, (0, 1, 3, 3)), ("7x7", 7, None, (0, 1, 2, 2)),
             ("grouped 3x3", 3, lambda channels: channels // 16, (0, 1, 3, 3)))
_STEMS = ((0, (8, 3, 32, 64, 3, 2)), (0, (4, 3, 64, 112, 7, 2)), (1, (8, 3, 64, 32, 3, 1)), (1, (2, 3, 96, 64, 8, 8)),
          (2, (16, 3, 16, 96, 3, 2)),
          (2, (16, 1, 32, 28, 3, 1)), (3, (4, 3, 48, 96, 3, 1)))


def convolutions():
    chance = random.Random(_SEED)
    for _, kernel, groups, counts in _FAMILIES:
        for rank, count in enumerate(counts):
            for _ in range(count):
                sizes = _drawn(chance, kernel, groups)
                yield from _passes(rank, **sizes)
                if flops_of(spec("convolution", "convolution", **sizes)) >= (COLD_FLOPS if groups is None else COLD_FLOPS / 10):
                    yield from _passes(rank, warm=False, **sizes)
    for rank, (batch, inputs, outputs, side, kernel, stride) in _STEMS:
        padding = 0 if kernel == stride else kernel // 2  # patches of a transformer do not overlap
        yield from _passes(rank, first=True, batch=batch, in_channels=inputs, out_channels=outputs, height=side, width=side,
                           kernel=kernel, stride=stride, padding=padding)


def half():
    """A few in BF16: whether it pays on this CPU."""
    for m, n, k in ((256, 512, 512), (1024, 768, 768)):
        yield 3, spec("gemm", "mm", m=m, n=n, k=k, transpose_b=1, precision="bf16")
    for function in ("add", "mul"):
        yield 3, spec("elementwise", function, elements=1048576, inputs=2, precision="bf16")
    yield from _passes(3, batch=8, in_channels=64, out_channels=64, height=28, width=28, kernel=3, stride=1, padding=1,
                       precision="bf16")


_PARTS = (convolutions, gemms, elementwise, norms, softmaxes, reductions, attentions, gathers, pools, copies_and_fills, half)


def everything() -> list:
    """All specs in the order in which they are measured. Within a rank the parts take turns, so that a budget that ends within it
    leaves none without."""
    ranks: dict = {}
    for part in _PARTS:
        for rank, wanted in part():
            ranks.setdefault(rank, {}).setdefault(part.__name__, []).append(wanted)
    found, seen = [], set()
    for rank in sorted(ranks):
        for wanted in _in_turns(list(ranks[rank].values())):
            if wanted.key() not in seen:
                seen.add(wanted.key())
                found.append(wanted)
    return found


def _in_turns(lists: list) -> list:
    """One list in which each of `lists` is spread evenly."""
    placed = [((i + 0.5) / len(items), number, item) for number, items in enumerate(lists) for i, item in enumerate(items)]
    return [item for _, _, item in sorted(placed, key=lambda place: place[:2])]
