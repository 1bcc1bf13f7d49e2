"""What is measured, most valuable first, so that whatever time there is buys the most."""

MIB = 1 << 20

# (model, batches): the second is what a card of 16 GiB holds in fp32, the first a quarter of it, the third a half.
SPREAD = [("resnet50", (96, 24, 48)), ("gpt2", (8, 2, 4)), ("vit_small", (128, 32, 64)), ("mlp", (8192, 512, 2048)),
          ("resnet18", (192, 48, 96)), ("lstm", (256, 32, 96))]
PRECISIONS = ("fp32", "amp-bf16", "amp-fp16")
OPTIMIZERS = (("sgd", "foreach"), ("adamw", "foreach"), ("adamw", "fused"))
SNAPSHOTS = (("mlp", 512, "adamw", "foreach"), ("resnet18", 8, "sgd", "foreach"), ("gpt2", 2, "adamw", "foreach"))
SEARCHES = (("resnet50", "amp-fp16", 4096 * MIB), ("gpt2", "amp-bf16", 8192 * MIB))


def step(model, precision, optimizer, loop, batch, **more):
    return {"kind": "step", "model": model, "precision": precision, "optimizer": optimizer, "optimizer_loop": loop,
            "batch": batch, "cudnn_benchmark": False, **more}


def snapshots():
    return [{**step(model, "fp32", optimizer, loop, batch), "kind": "snapshot"}
            for model, batch, optimizer, loop in SNAPSHOTS]


def _grid(which, precisions, optimizers, **more):
    """One batch of each model (0: the large one, 1: the small one, 2: between) in each precision and optimizer."""
    return [step(model, precision, optimizer, loop, batches[which], **more) for precision in precisions
            for optimizer, loop in optimizers for model, batches in SPREAD]


def _shapes():
    """Steps of other shapes, each with the flags by which `stoker predict` is told of them."""
    return [step("resnet50", "amp-fp16", "sgd", "foreach", 96, channels_last=True),
            step("gpt2", "amp-bf16", "adamw", "foreach", 8, clip=True),
            step("gpt2", "amp-bf16", "adamw", "foreach", 4, accumulate=4),
            step("gpt2_checkpointed", "amp-bf16", "adamw", "foreach", 8),
            step("gpt2", "fp32", "adamw", "foreach", 8, alloc_conf="expandable_segments:True"),
            step("gpt2", "fp32", "adamw", "for-loop", 4), step("resnet50", "fp32", "sgd", "for-loop", 48),
            step("gpt2", "fp32", "adam", "foreach", 4), step("gpt2", "fp32", "rmsprop", "foreach", 4),
            step("gpt2", "fp32", "adagrad", "foreach", 4)]


def flags(case):
    """The flags of `stoker predict` that say what the columns do not."""
    found = []
    if case.get("channels_last"):
        found.append("--channels-last")
    if case.get("clip"):
        found.append("--clip")
    if case.get("accumulate", 1) > 1:
        found.append(f"--accumulate {case['accumulate']}")
    if case.get("alloc_conf"):
        found.append(f"--alloc-conf {case['alloc_conf']}")
    if case["optimizer"] == "adamw":
        found.append("--weight-decay 0.01")  # PyTorch's default for it
    if case["precision"] == "amp-fp16":
        found.append("--grad-scaler")
    return " ".join(found)


def planned():
    """Everything but the searches, in order, without repetitions."""
    first = ("sgd", "foreach"), ("adamw", "foreach")
    pictures = [c for c in _grid(0, ("fp32", "amp-fp16"), first[:1], cudnn_benchmark=True)
                if c["model"] in ("resnet50", "resnet18", "vit_small")]
    everything = [{"kind": "context"}, *_grid(0, ("fp32",), first[:1]), *_grid(0, ("amp-bf16",), first[1:]), *snapshots(),
                  "searches", *_grid(1, ("fp32",), first[1:]), *_shapes(), *pictures, *_grid(0, ("amp-fp16",), first[:1]),
                  *_grid(2, ("fp32", "amp-bf16"), first), *_grid(0, PRECISIONS, OPTIMIZERS), *_grid(1, PRECISIONS, OPTIMIZERS)]
    return [c for i, c in enumerate(everything) if c not in everything[:i]]


def short():
    """A taste of each kind, for a machine without a GPU and for tests."""
    return [{"kind": "context"}, step("mlp", "fp32", "sgd", "foreach", 64, iterations=2),
            step("resnet18", "amp-bf16", "adamw", "fused", 1, iterations=2), snapshots()[0]]
