"""What is measured, most valuable first, so that whatever time there is buys the most."""

from ...calibrate.gpu import cases as single
from ...calibrate.gpu.cases import (
    EMPTY_KERNEL,
    attentions,
    convolutions,
    copies,
    fit_terms,
    gemms,
    host,
    linears,
    memory_bound,
    operator,
    optimizers,
    recurrent,
    shape_text,
)

__all__ = ("EMPTY_KERNEL", "fit_terms", "shape_text")  # used by the other parts as this module's

# (model, batch that fills a data-centre GPU, batch of a small one where the host shows)
PICTURES = (("resnet50", 128, 8), ("mobilenet", 128, 8), ("grouped_net", 128, 8), ("vit_small", 256, 8), ("convnext", 64, 4),
            ("vgg16", 64, 4), ("unet", 32, 2), ("resnet18", 256, 16))
WORDS = (("gpt2", 16, 1), ("bert", 64, 2), ("lstm", 256, 16))
HOST_BOUND = (("small_cnn", 512, 32), ("deep_narrow", 512, 32), ("mlp", 8192, 64))


def step(model, precision, batch, optimizer=None, loop="foreach", **more):
    words = model in {m for m, *_ in WORDS} or model in ("vit_small", "convnext")
    return {"kind": "step", "model": model, "precision": precision, "batch": batch, "channels_last": False,
            "optimizer": optimizer or ("adamw" if words else "sgd"), "optimizer_loop": loop, **more}


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
    return single.once(everything, key_of)


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


def key_of(case):
    """What tells a case from all others, also among rows that an earlier run left."""
    if case["kind"] != "step":
        return single.key_of(case)
    words = [case["model"], case["precision"], f"batch={case['batch']}", case["optimizer"], case["optimizer_loop"]]
    return " ".join(words + [flag for flag in ("channels_last", "cudnn_benchmark") if case.get(flag)])


def flags(case):
    """The flags of `stoker predict` that say what the columns of steps.csv do not."""
    found = ["--channels-last"] if case.get("channels_last") else []
    found += ["--cudnn-benchmark"] if case.get("cudnn_benchmark") else []
    found += ["--weight-decay 0.01"] if case["optimizer"] == "adamw" else []  # PyTorch's default for it
    return " ".join(found + (["--grad-scaler"] if case["precision"] == "amp-fp16" else []))
