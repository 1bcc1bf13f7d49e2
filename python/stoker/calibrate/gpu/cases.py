"""Operators of a GPU that are measured, in families, and what they are called in a machine file."""

HALF = ("bf16", "fp16")
KIB, MIB = 1 << 10, 1 << 20


def operator(name, precision, **shape):
    given = {k: v for k, v in shape.items() if v is not None}
    return {"kind": "operator", "operator": name, "precision": precision, "shape": given}


EMPTY_KERNEL = operator("copy", "fp32", dims="16")  # what its time holds is the launch
CONTEXT = {"kind": "host", "what": "context", "name": "context"}

# -- operators -----------------------------------------------------------------------------------------------------------


def gemms(dtype):
    """Square ones, a transformer's, thin ones, deep ones, those of one wave and a bit more, misaligned ones."""
    sizes = [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (1024, 1024, 1024), (512, 512, 512), (256, 256, 256),
             (8192, 768, 768), (8192, 3072, 768), (8192, 768, 3072), (8192, 50257, 768), (768, 768, 8192), (3072, 768, 8192),
             (128, 4096, 4096), (16, 4096, 4096), (1, 4096, 4096), (64, 1000, 2048), (2304, 2304, 512), (1536, 1280, 4096)]
    found = [operator("gemm", dtype, m=m, n=n, k=k, transpose_b=1) for m, n, k in sizes]
    found += [operator("gemm", dtype, m=m, n=n, k=k, transpose_a=1) for m, n, k in ((768, 3072, 8192), (4096, 4096, 4096))]
    found += [operator("gemm", dtype, batch=b, m=m, n=n, k=k, transpose_b=1) for b, m, n, k in
              ((96, 512, 512, 64), (192, 128, 128, 64), (16, 1024, 1024, 128), (768, 50, 50, 64))]
    if dtype != "fp32":  # rows of 2 and of 4 bytes' alignment
        found += [operator("gemm", dtype, m=4096, n=n, k=k, transpose_b=1) for n, k in
                  ((4096, 4095), (4095, 4096), (4098, 4098), (577, 768))]
    return found


def linears(dtype):
    return [operator("linear", dtype, m=m, n=n, k=k) for m, n, k in
            ((8192, 3072, 768), (8192, 768, 3072), (2048, 4096, 1024), (256, 1000, 2048))]


_STAGES = ((64, 56), (128, 28), (256, 14), (512, 7))


def convolutions(dtype, nhwc, batch):
    """ResNet's 3x3 and 1x1 at each stage, its stem, depthwise and grouped ones."""
    layout = {"channels_last": 1} if nhwc else {}

    def conv(inputs, outputs, side, kernel, **more):
        return operator("conv2d", dtype, batch=batch, in_channels=inputs, out_channels=outputs, height=side, width=side,
                        kernel=kernel, padding=kernel // 2, **more, **layout)

    found = [conv(c, c, side, 3) for c, side in _STAGES] + [conv(c, 4 * c, side, 1) for c, side in _STAGES]
    found += [conv(3, 64, 224, 7, stride=2), conv(256, 512, 56, 1, stride=2), conv(512, 128, 28, 1), conv(64, 64, 112, 3)]
    found += [conv(c, c, side, 3, groups=c) for c, side in ((96, 112), (144, 56), (384, 14), (960, 7))]
    found += [conv(c, c, side, 7, groups=c) for c, side in ((96, 56), (384, 14))]
    found += [conv(c, c, side, 3, groups=g) for c, side, g in ((128, 56, 32), (512, 14, 32), (256, 28, 4))]
    return found


def attentions(dtype):
    shapes = ((16, 12, 1024, 64), (64, 12, 128, 64), (4, 16, 2048, 128), (128, 6, 197, 64), (1, 8, 4096, 64))
    backends = ("efficient", "math") if dtype in ("fp32", "tf32") else ("flash", "efficient", "math")
    return [operator("attention", dtype, batch=b, heads=h, query_length=n, key_length=n, head_dim=w, causal=causal,
                     backend=backend)
            for backend in backends for b, h, n, w in shapes for causal in (None, 1) if not (backend == "math" and n > 1100)]


def memory_bound(dtype):
    """Operators whose operands lie in the L2 cache, are about as large, and far exceed it."""
    found = []
    for dims in ("64x256x56x56", "32x64x28x28", "8192x768", "512x768", "64x12x128x128", "8192x50257"):
        four = dims.count("x") == 3
        names = ("add", "relu", "copy", "cast") + (("batch_norm", "max_pool", "mean") if four and "128x128" not in dims else ())
        names += ("layer_norm", "gelu", "bias", "dropout", "softmax") if not four and "50257" not in dims else ()
        names += ("softmax", "dropout") if "128x128" in dims else ()
        names += ("softmax", "cross_entropy") if "50257" in dims else ()
        found += [operator(name, dtype, dims=dims) for name in names]
    found += [operator("batch_norm", dtype, dims="64x256x56x56", channels_last=1),
              operator("transpose", dtype, dims="64x512x1024"), operator("silu", dtype, dims="64x256x56x56"),
              operator("embedding", dtype, dims="50257x768", ids=8192)]
    return found


def recurrent(dtype):
    return [operator(kind, dtype, batch=b, length=n, width=w, layers=2) for kind in ("lstm", "gru")
            for b, n, w in ((64, 64, 512), (16, 128, 1024))]


def optimizers():
    return [operator("optimizer", "fp32", kind=kind, loop=loop, tensors=n, side=side, vectors=n) for kind in ("adamw", "sgd")
            for loop in ("foreach", "fused", "for-loop") for n, side in ((60, 512), (150, 900), (200, 64))]


# -- the host ------------------------------------------------------------------------------------------------------------


def host():
    dispatch = [{"kind": "host", "what": "dispatch", "name": name} for name in
                ("elementwise", "view", "matmul", "module", "autograd_forward", "autograd_both", "optimizer_foreach",
                 "autocast_matmul")]
    return dispatch + [{"kind": "host", "what": "synchronize", "name": name} for name in ("item", "synchronize")]


def copies():
    return [{"kind": "host", "what": "copy", "name": name, "bytes": size} for name in
            ("h2d_pinned", "h2d_pageable", "d2h_pinned", "d2h_pageable")
            for size in (4 * KIB, 256 * KIB, 4 * MIB, 64 * MIB)]


def shape_text(shape):
    """"m=4096 n=4096 k=4096 transpose_b=1": the column of operators.csv."""
    return " ".join(f"{name}={value}" for name, value in shape.items())


def _product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def fit_terms(case, name):
    """(kind, sizes) of a row in the words of `stoker fit` (docs/guide/fit.md); empty for passes that it knows no single kernel for."""
    operator_, shape = case["operator"], case["shape"]
    forward = name == "forward"
    if operator_ in ("gemm", "conv2d"):
        return {"gemm": "gemm", "conv2d": "convolution"}[operator_], shape
    if operator_ == "linear" and forward:
        return "gemm", {**shape, "transpose_b": 1, "bias": 1}
    if operator_ == "attention" and shape["backend"] == ("flash" if case["precision"] in HALF else "efficient"):
        return "attention", {k: v for k, v in shape.items() if k != "backend"}
    if operator_ == "optimizer" and shape["loop"] == "fused":
        elements = shape["tensors"] * shape["side"] ** 2 + shape.get("vectors", 0) * shape["side"]
        reads, writes = (4, 3) if shape["kind"] == "adamw" else (3, 2)
        return "optimizer", {"elements": elements, "reads": reads, "writes": writes}
    if "dims" not in shape:
        return "", {}
    dims = [int(d) for d in shape["dims"].split("x")]
    elements = _product(dims)
    if operator_ in ("softmax", "layer_norm"):
        return operator_, {"rows": elements // dims[-1], "width": dims[-1]}
    if operator_ == "batch_norm":
        return operator_, {"elements": elements}
    if forward and operator_ in ("relu", "gelu", "silu", "add"):
        return "elementwise", {"elements": elements, "inputs": 2 if operator_ == "add" else 1}
    if forward and operator_ in ("copy", "transpose"):
        return "copy", {"elements": elements}
    if forward and operator_ == "embedding":
        return "gather", {"elements": shape["ids"] * dims[-1]}
    return "", {}


def key_of(case):
    """What tells a case from all others, also among rows that an earlier run left."""
    if case["kind"] == "operator":
        return f"{case['operator']} {case['precision']} {shape_text(case['shape'])}{' warm' if case.get('warm') else ''}"
    return f"{case['what']} {case['name']} {case.get('bytes', '')}".strip()


def once(everything, key=key_of):
    """Each case where it comes first."""
    seen, found = set(), []
    for case in everything:
        if key(case) not in seen:
            seen.add(key(case))
            found.append(case)
    return found


def planned():
    """What a calibration measures, most valuable first: the launch and the host, without which nothing else can be told; one or two of
    each kind; what nets run on tensor cores; then FP32, FP16 and rarer shapes. Those that a machine file has no words for are left out."""
    everything = [CONTEXT, *host(), EMPTY_KERNEL, *copies(), *_first(), *gemms("bf16"), *convolutions("bf16", True, 64),
                  *attentions("bf16"),
                  *memory_bound("bf16"), *gemms("tf32"), *convolutions("tf32", False, 32), *memory_bound("fp32"), *optimizers(),
                  *linears("bf16"), *convolutions("bf16", False, 64), *gemms("fp32"), *attentions("fp32"), *gemms("fp16"),
                  *convolutions("fp16", True, 64), *convolutions("fp32", False, 16), *attentions("fp16"), *memory_bound("fp16"),
                  *linears("fp32")]
    return once(case for case in everything if case["kind"] != "operator" or fit_terms(case, "forward")[0])


def _first():
    """One or two of each kind and precision, so that a budget of seconds leaves none without."""
    for make in (gemms, attentions, memory_bound):
        for dtype in ("bf16", "fp32"):
            yield from make(dtype)[::6]
    for dtype, nhwc, batch in (("bf16", True, 64), ("tf32", False, 32), ("fp32", False, 16)):
        yield from convolutions(dtype, nhwc, batch)[::5]
    yield from gemms("tf32")[::6]
    yield from optimizers()[1::6]
    for case in memory_bound("fp32")[::3]:  # again with operands that the L2 cache still holds
        yield {**case, "warm": True}
