"""Random commands out of the settings table. A setting without a line here fails a test, so that a new one is drawn, too."""

from __future__ import annotations

import random

from command import HOST
from table import rows_of

MODELS = ("resnet50", "gpt2", "cnn_cifar10", "bert_base", "vit_b_16", "mobilenet_v3_large", "t5_small", "gru_bi128", "unet", "resnet18")
GPUS = ("t4", "v100-16gb", "a100-40gb", "h100", "rtx-3090", "rtx-4090", "p100", "l4", "rtx-2070", "b100")

# Why a flag of predict is not drawn here.
NOT_DRAWN = {
    "gpu": "given by each command", "json": "likewise", "host": "likewise, so that the machine that tests does not matter",
    "recapture": "captures need PyTorch", "mode": "likewise", "lora": "likewise", "qlora": "likewise", "assume": "likewise",
    "compile": "likewise", "batch-arg": "of training scripts", "time-limit": "likewise", "max-host-memory": "likewise",
    "fake-data": "likewise", "allow-network": "likewise", "coefficients": "names a file", "data": "likewise", "from": "likewise",
    "html": "likewise", "reprobe": "of a folder of data", "storage": "of data that were probed", "image-size": "likewise",
    "explain": "another form of the answer", "by-layer": "likewise", "method": "likewise", "reading": "likewise",
    "strong": "of a range of GPUs", "step-ms": "likewise", "gpus-per-node": "likewise", "strict": "changes the exit code",
    "objective": "of several GPUs", "dim": "of a model of one's own", "global-batch": "stands in place of --batch",
    "last-batch": "needs to be below the batch",
}


def of(*values):
    return lambda chance: chance.choice(values)


def whole(low: int, high: int):
    return lambda chance: chance.randint(low, high)


def real(low: float, high: float):
    return lambda chance: round(chance.uniform(low, high), 3)


# Value of a flag; True and False of a switch.
DRAWN = {
    "gpus": of(1, 1, 1, 2, 4, 8), "price": real(0.1, 9), "samples": whole(100, 2_000_000), "sample-cost": of("0.2ms", "2.5ms", "30ms"),
    "workers": whole(0, 20), "prefetch": whole(1, 6), "pin": of(True, False), "persistent-workers": of(True, False),
    "start-method": of("fork", "forkserver", "spawn"), "batch": of(1, 2, 3, 5, 8, 16, 24, 32, 64, 100, 128, 256),
    "precision": of("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "fp16"), "accumulate": of(1, 1, 2, 4, 7),
    "checkpoint": of("blocks"), "loss": of("captured", "fused"), "seq-len": of(32, 64, 128, 200), "threads": whole(1, 16),
    "drop-output": of(True), "channels-last": of(True), "cudnn-benchmark": of(True), "cuda-graphs": of(True),
    "copy": of("overlapped", "non-blocking", "blocking"), "validation": of(0, 8, 64), "validation-samples": whole(1, 50_000),
    "validation-with-grad": of(True), "epochs": whole(1, 200), "prefetching-loader": of(True),
    "optimizer": of("sgd", "adam", "adamw", "rmsprop", "adagrad", "adafactor", "lion", "lbfgs", "adamw8bit"),
    "optimizer-loop": of("foreach", "fused", "for-loop"), "momentum": of(0, 0.5, 0.9), "weight-decay": of(0, 0.01),
    "nesterov": of(True), "clip": of(True, False), "clip-checks": of(True), "ema": of(True, False), "grad-scaler": of(True, False),
    "zero-grad-after": of(True), "zero-grad-fills": of(True), "zero-grad-between": of(True), "nodes": of(1, 2),
    "parallel": of("ddp", "dp", "fsdp", "fsdp-zero2"), "fsdp-mixed-precision": of("reduce-fp32", "reduce-half"),
    "fsdp-cpu-offload": of(True), "fsdp-group": of(2, 4), "bucket-view": of(True), "network": of("10G", "100G", "4x100G", "edr"),
    "link": of("pcie", "nvlink"), "alloc-conf": of("expandable_segments:True", "max_split_size_mb:128"),
    "memory-fraction": of(0.5, 0.9, 1), "cublas-workspace": of(":4096:2:16:8", ":0:0"),
}


def drawn_rows() -> list:
    return [row for row in rows_of("predict") if row.name in DRAWN]


def settings(chance: random.Random, most: int = 6) -> dict:
    """Values by the names of some settings."""
    chosen = chance.sample(drawn_rows(), chance.randint(0, most))
    return {row.name: DRAWN[row.name](chance) for row in chosen}


def words_of(given: dict, spell=lambda name: name) -> list:
    """The flags of a command line."""
    words = []
    for name, value in given.items():
        if value is True:
            words.append("--" + spell(name))
        elif value is False:
            words.append("--no-" + spell(name))
        else:
            words += ["--" + spell(name), str(value)]
    return words


def job(chance: random.Random, most: int = 6) -> tuple:
    """(model, GPU, settings)."""
    return chance.choice(MODELS), chance.choice(GPUS), settings(chance, most)


def predict(model: str, gpu: str, given: dict, *more: str, host: str = HOST) -> list:
    return ["predict", model, "--gpu", gpu, "--host", host, *words_of(given), *more, "--json"]
