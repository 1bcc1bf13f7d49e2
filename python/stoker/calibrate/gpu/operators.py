"""Builds the operators that are measured: for each a function of the forward, and one of forward and backward together."""

import contextlib

import torch
from torch import nn
from torch.nn import functional

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
BACKENDS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}


def set_units(dtype):
    """TF32 or real FP32, for products and convolutions alike."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype == "tf32"


def _random(shape, dtype, device, grad=False):
    return torch.randn(shape, device=device, dtype=torch.float32).to(DTYPES[dtype]).mul_(0.1).requires_grad_(grad)


def _bytes(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class Operator:
    """`forward(*operands)`; which operands want gradients; `flops` of the forward."""

    def __init__(self, forward, operands, flops=0, context=contextlib.nullcontext, module=None, passes=None):
        self.forward, self.operands, self.flops, self.context, self.module = forward, operands, flops, context, module
        self.passes = passes  # name of a backward -> positions of the operands whose gradients it makes; None: all in one

    def footprint(self):
        return _bytes(*self.operands)

    def copies(self, count):
        """Sets of operands, the first being its own."""
        sets = [self.operands]
        for _ in range(count - 1):
            sets.append([t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad)
                         for t in self.operands])
        return sets

    def runs(self, count):
        """The forward of the i-th set, and by name each backward: forward and backward of it together."""
        sets = self.copies(count)

        def forward(i):
            with self.context():
                return self.forward(*sets[i % count])

        wanted = [t for t in self.operands if t.requires_grad]
        parameters = list(self.module.parameters()) if self.module is not None else []
        if not wanted and not parameters:
            return forward, {}
        with torch.no_grad():
            seed = torch.ones_like(forward(0))
        passes = self.passes or {"backward": [i for i, t in enumerate(self.operands) if t.requires_grad]}

        def both(positions):
            of_set = [[operands[p] for p in positions] + parameters for operands in sets]

            def run(i):
                with self.context():
                    out = self.forward(*sets[i % count])
                return torch.autograd.grad(out, of_set[i % count], seed)

            return run

        return forward, {name: both(positions) for name, positions in passes.items()}


def gemm(case, device):
    """C[b] = op(A[b]) op(B[b]), as nn.Linear (trans_b) and torch.matmul reach the library."""
    s, dtype = case["shape"], case["precision"]
    b, m, n, k = s.get("batch", 1), s["m"], s["n"], s["k"]
    left = _random((b, k, m) if s.get("transpose_a") else (b, m, k), dtype, device)
    right = _random((b, n, k) if s.get("transpose_b") else (b, k, n), dtype, device)

    def forward(x, y):
        x, y = (x.transpose(1, 2) if s.get("transpose_a") else x), (y.transpose(1, 2) if s.get("transpose_b") else y)
        return torch.bmm(x, y) if b > 1 else torch.mm(x[0], y[0])

    return Operator(forward, [left, right], 2.0 * b * m * n * k)


def linear(case, device):
    s, dtype = case["shape"], case["precision"]
    operands = [_random((s["m"], s["k"]), dtype, device, True), _random((s["n"], s["k"]), dtype, device, True),
                _random((s["n"],), dtype, device, True)]
    return Operator(functional.linear, operands, 2.0 * s["m"] * s["n"] * s["k"])


def conv2d(case, device):
    s, dtype = case["shape"], case["precision"]
    layout = torch.channels_last if s.get("channels_last") else torch.contiguous_format
    batch, inputs, outputs, groups = s["batch"], s["in_channels"], s["out_channels"], s.get("groups", 1)
    kernel, stride, padding = s["kernel"], s.get("stride", 1), s.get("padding", 0)
    x = _random((batch, inputs, s["height"], s["width"]), dtype, device).to(memory_format=layout).requires_grad_()
    w = _random((outputs, inputs // groups, kernel, kernel), dtype, device).to(memory_format=layout).requires_grad_()
    sides = [(s[name] + 2 * padding - kernel) // stride + 1 for name in ("height", "width")]
    flops = 2.0 * batch * outputs * sides[0] * sides[1] * (inputs // groups) * kernel * kernel
    return Operator(lambda a, b: functional.conv2d(a, b, None, stride, padding, 1, groups), [x, w], flops,
                    passes={"backward_input": [0], "backward_weight": [1]})


def attention(case, device):
    s, dtype = case["shape"], case["precision"]
    shape = (s["batch"], s["heads"], s["query_length"], s["head_dim"])
    operands = [_random(shape, dtype, device, True) for _ in range(3)]

    def context():
        if device != "cuda" or s["backend"] not in BACKENDS:
            return contextlib.nullcontext()
        from torch.nn.attention import SDPBackend, sdpa_kernel

        return sdpa_kernel(getattr(SDPBackend, BACKENDS[s["backend"]]))

    flops = 4.0 * s["batch"] * s["heads"] * s["query_length"] * s["key_length"] * s["head_dim"] * (0.5 if s.get("causal") else 1)
    return Operator(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=bool(s.get("causal"))),
                    operands, flops, context)


def _on(make):
    """An operator of one tensor of `shape["dims"]`, written 64x256x56x56."""
    def build(case, device):
        dims = [int(d) for d in case["shape"]["dims"].split("x")]
        layout = torch.channels_last if case["shape"].get("channels_last") else torch.preserve_format
        x = _random(dims, case["precision"], device)
        x = (x.to(memory_format=layout) if case["shape"].get("channels_last") else x).requires_grad_()
        return make(x, dims, case, device)

    return build


def _batch_norm(x, dims, case, device):
    c = dims[1]
    weight, bias = (torch.ones(c, device=device, requires_grad=True) for _ in range(2))  # FP32, as under autocast
    mean, var = torch.zeros(c, device=device), torch.ones(c, device=device)
    return Operator(lambda a, w, b: functional.batch_norm(a, mean, var, w, b, training=True), [x, weight, bias])


def _layer_norm(x, dims, case, device):
    weight, bias = (torch.ones(dims[-1], device=device, dtype=x.dtype, requires_grad=True) for _ in range(2))
    return Operator(lambda a, w, b: functional.layer_norm(a, (dims[-1],), w, b), [x, weight, bias])


def _cross_entropy(x, dims, case, device):
    target = torch.zeros(dims[0], dtype=torch.long, device=device)
    return Operator(lambda a: functional.cross_entropy(a.float(), target), [x])


def _add(x, dims, case, device):
    return Operator(torch.add, [x, torch.randn_like(x).requires_grad_()])


def _bias(x, dims, case, device):
    return Operator(torch.add, [x, torch.randn(dims[-1], device=device, dtype=x.dtype).requires_grad_()])


def _cast(x, dims, case, device):
    other = torch.float16 if x.dtype == torch.float32 else torch.float32
    return Operator(lambda a: a.to(other), [x.detach()])


def _embedding(x, dims, case, device):
    ids = torch.arange(case["shape"]["ids"], device=device) * 7919 % dims[0]  # a prime step: no two neighbours share a row
    return Operator(lambda a: functional.embedding(ids, a), [x])


def _alone(function):
    return lambda x, dims, case, device: Operator(function, [x])


def lstm(case, device):
    s, dtype = case["shape"], case["precision"]
    kind = nn.LSTM if case["operator"] == "lstm" else nn.GRU
    module = kind(s["width"], s["width"], s.get("layers", 1), batch_first=True).to(device, DTYPES[dtype])
    gates = 4 if kind is nn.LSTM else 3
    flops = 4.0 * gates * s.get("layers", 1) * s["batch"] * s["length"] * s["width"] ** 2
    x = _random((s["batch"], s["length"], s["width"]), dtype, device, True)
    return Operator(lambda inputs: module(inputs)[0], [x], flops, module=module)


def optimizer(case, device):
    """One step over `tensors` square matrices of `side`, or those and as many vectors."""
    s = case["shape"]
    shapes = [(s["side"], s["side"])] * s["tensors"] + [(s["side"],)] * s.get("vectors", 0)
    parameters = [nn.Parameter(torch.zeros(shape, device=device)) for shape in shapes]
    for p in parameters:
        p.grad = torch.ones_like(p)
    loop = {"foreach": {"foreach": True}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[s["loop"]]
    if s["kind"] == "sgd":
        made = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **loop)
    else:
        made = torch.optim.AdamW(parameters, lr=1e-5, capturable=device == "cuda", **loop)
    return Operator(lambda *p: made.step(), [p.detach() for p in parameters])


BUILDERS = {
    "gemm": gemm, "linear": linear, "conv2d": conv2d, "attention": attention, "lstm": lstm, "gru": lstm,
    "optimizer": optimizer, "batch_norm": _on(_batch_norm), "layer_norm": _on(_layer_norm), "cross_entropy": _on(_cross_entropy),
    "add": _on(_add), "bias": _on(_bias), "cast": _on(_cast), "embedding": _on(_embedding),
    "relu": _on(_alone(functional.relu)), "gelu": _on(_alone(functional.gelu)), "softmax": _on(_alone(lambda x: x.softmax(-1))),
    "dropout": _on(_alone(lambda x: functional.dropout(x, 0.1, True))), "silu": _on(_alone(functional.silu)),
    "max_pool": _on(_alone(lambda x: functional.max_pool2d(x, 3, 2, 1))), "mean": _on(_alone(lambda x: x.mean((2, 3)))),
    "transpose": _on(_alone(lambda x: x.transpose(-1, -2).contiguous())),
    "copy": _on(lambda x, dims, case, device: Operator(torch.clone, [x.detach()])),
}


def build(case, device):
    set_units(case["precision"])
    return BUILDERS[case["operator"]](case, device)
