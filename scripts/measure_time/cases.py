"""What is measured, most valuable first, so that whatever time there is buys the most."""

HALF = ("bf16", "fp16")
KIB, MIB = 1 << 10, 1 << 20

# (model, batch that fills a data-centre GPU, batch of a small one where the host shows)
PICTURES = (("resnet50", 128, 8), ("mobilenet", 128, 8), ("grouped_net", 128, 8), ("vit_small", 256, 8), ("convnext", 64, 4),
            ("vgg16", 64, 4), ("unet", 32, 2), ("resnet18", 256, 16))
WORDS = (("gpt2", 16, 1), ("bert", 64, 2), ("lstm", 256, 16))
HOST_BOUND = (("small_cnn", 512, 32), ("deep_narrow", 512, 32), ("mlp", 8192, 64))


def step(model, precision, batch, optimizer=None, loop="foreach", **more):
    words = model in {m for m, *_ in WORDS} or model in ("vit_small", "convnext")
    return {"kind": "step", "model": model, "precision": precision, "batch": batch, "channels_last": False,
            "optimizer": optimizer or ("adamw" if words else "sgd"), "optimizer_loop": loop, **more}


def operator(name, precision, **shape):
    given = {k: v for k, v in shape.items() if v is not None}
    return {"kind": "operator", "operator": name, "precision": precision, "shape": given}


EMPTY_KERNEL = operator("copy", "fp32", dims="16")  # what its time holds is the launch

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
    """Of operands in the L2 cache, around it and far beyond it."""
    found = []
    for dims in ("64x256x56x56", "32x64x28x28", "8192x768", "512x768", "64x12x128x128", "8192x50257"):
        four = dims.count("x") == 3
        names = ("add", "relu", "copy", "cast") + (("batch_norm", "max_pool", "mean") if four and "128x128" not in dims else ())
        names += ("layer_norm", "gelu", "bias", "dropout", "softmax") if not four and "50257" not in dims else ()
        names += ("softmax", "dropout") if "128x128" in dims else ()
        names += ("softmax", "cross_entropy") if "50257" in dims else ()
        found += [operator(name, dtype, dims=dims) for name in names]
    found += [operator("batch_norm", dtype, dims="64x256x56x56", channels_last=1),
              operator("transpose", dtype, dims="64x512x1024"), operator("silu", dtype, dims="64x256x56x56"), operator("embedding", dtype, dims="50257x768", ids=8192)]
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


# -- whole steps ---------------------------------------------------------------------------------------------------------


def steps(precision, large=True, which=None, **more):
    return [step(model, precision, big if large else small, **more) for model, big, small in which or PICTURES + WORDS]


def planned():
    """Everything, in order, without repetitions."""
    nets = PICTURES[:4]
    everything = [
        *host(), EMPTY_KERNEL, *steps("amp-bf16"), *gemms("bf16"), *steps("amp-bf16", False), *convolutions("bf16", True, 64),
        *attentions("bf16"), *memory_bound("bf16"), *steps("tf32", True, PICTURES[:3] + WORDS), *steps("fp32", False, HOST_BOUND),
        *gemms("tf32"), *convolutions("bf16", False, 64), *copies(), *steps("amp-bf16", True, nets, channels_last=True),
        *gemms("fp32"), *optimizers(), *steps("amp-fp16", True, nets + WORDS), *linears("bf16"), *convolutions("tf32", False, 32),
        *memory_bound("fp32"), *gemms("fp16"), *steps("fp32"), *attentions("fp16"), *recurrent("fp16"), *attentions("fp32"),
        *convolutions("fp16", True, 64), *convolutions("fp32", False, 16), *steps("fp32", True, HOST_BOUND),
        *steps("amp-bf16", False, HOST_BOUND), *recurrent("fp32"), *linears("fp32"), *memory_bound("fp16"),
        *steps("tf32", True, nets, cudnn_benchmark=True), *steps("amp-fp16", False),
        *steps("amp-bf16", True, nets[:1] + WORDS[:1], optimizer="adamw", loop="fused"), *convolutions("bf16", True, 8)]
    return _once(everything)


def short():
    """A taste of each kind, for a machine without a GPU and for tests."""
    return [*host()[:3], EMPTY_KERNEL, step("small_cnn", "fp32", 8), operator("gemm", "fp32", m=64, n=64, k=64, transpose_b=1),
            operator("conv2d", "fp32", batch=2, in_channels=8, out_channels=8, height=14, width=14, kernel=3, padding=1),
            operator("attention", "fp32", batch=1, heads=2, query_length=32, key_length=32, head_dim=16, backend="math"),
            operator("batch_norm", "fp32", dims="2x8x14x14"), operator("layer_norm", "fp32", dims="32x64"),
            operator("softmax", "bf16", dims="32x64"), operator("cast", "fp32", dims="32x64"),
            operator("embedding", "fp32", dims="100x16", ids=32), operator("lstm", "fp32", batch=2, length=4, width=16),
            operator("optimizer", "fp32", kind="adamw", loop="foreach", tensors=3, side=16, vectors=3),
            step("deep_narrow", "amp-bf16", 8, optimizer="adamw"), copies()[0]]


def _once(everything):
    seen, found = set(), []
    for case in everything:
        key = key_of(case)
        if key not in seen:
            seen.add(key)
            found.append(case)
    return found


def shape_text(shape):
    """"m=4096 n=4096 k=4096 transpose_b=1": the column of operators.csv."""
    return " ".join(f"{name}={value}" for name, value in shape.items())


def _product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def fit_terms(case, name):
    """(kind, sizes) of a row in the words of `stoker fit` (docs/fit.md); empty for passes that it knows no single kernel for."""
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
        return f"{case['operator']} {case['precision']} {shape_text(case['shape'])}"
    if case["kind"] == "host":
        return f"{case['what']} {case['name']} {case.get('bytes', '')}".strip()
    words = [case["model"], case["precision"], f"batch={case['batch']}", case["optimizer"], case["optimizer_loop"]]
    return " ".join(words + [flag for flag in ("channels_last", "cudnn_benchmark") if case.get(flag)])


def flags(case):
    """The flags of `stoker predict` that say what the columns of steps.csv do not."""
    found = ["--channels-last"] if case.get("channels_last") else []
    found += ["--cudnn-benchmark"] if case.get("cudnn_benchmark") else []
    found += ["--weight-decay 0.01"] if case["optimizer"] == "adamw" else []  # PyTorch's default for it
    return " ".join(found + (["--grad-scaler"] if case["precision"] == "amp-fp16" else []))
