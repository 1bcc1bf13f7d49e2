"""What is run, most valuable first, and how the time is shared out."""

import dataclasses
import sys

MEMORY_MODELS, TIME_MODELS = "scripts/measure_memory/models.py", "scripts/measure_time/models.py"
# Eight models in plain PyTorch: a batch that fills a data-centre GPU, and one where the host shows.
ZOO = (("resnet50", MEMORY_MODELS, 128, 8), ("gpt2", MEMORY_MODELS, 16, 1), ("bert", TIME_MODELS, 64, 2),
       ("vit_small", MEMORY_MODELS, 256, 8), ("mobilenet", TIME_MODELS, 128, 8), ("lstm", MEMORY_MODELS, 256, 16),
       ("convnext", TIME_MODELS, 64, 4), ("vgg16", TIME_MODELS, 64, 4))
SHORT_ZOO = (("small_cnn", TIME_MODELS, 16, 4), ("deep_narrow", TIME_MODELS, 16, 4))
PRECISIONS = "fp32,tf32,amp-bf16"
SHORT_PRECISIONS = "fp32,amp-bf16"

CALIBRATION, TRAINING = "calibration.json", "training.json"  # file names


@dataclasses.dataclass
class Step:
    """`share` of the whole time; `most` seconds at most. The last step has what is left."""

    name: str
    command: list  # "{budget}" stands for the seconds that it is given, "{folder}" for where the results go
    share: float
    most: float = float("inf")


def zoo(device):
    return ZOO if device == "cuda" else SHORT_ZOO


def _training(device, which, share):
    """One repetition of each: on an idle GPU more say little. `which` 0: the large batches, 1: the small ones."""
    models = [f"{path}:{name}@{batches[which]}" for name, path, *batches in zoo(device)]
    command = [sys.executable, "-m", "stoker", "training-runs", *models, "--device", device, "--repetitions", "1",
               "--precision", PRECISIONS if device == "cuda" else SHORT_PRECISIONS, "--budget", "{budget}s",
               "--out", "{folder}/" + TRAINING]
    return Step(("large", "small")[which] + " batches", command, share)


def _watch(device):
    """Jobs with planted faults on the GPU, watched from outside; their recordings are judged again without one."""
    if device == "cpu":
        return []
    return [Step("watch", [sys.executable, "tests/jobs/run.py", "--gpu", "--seconds", "8", "--budget", "{budget}",
                           "--keep", "{folder}/watch", "--out", "{folder}/watch.md"], 0.15, 110)]


def steps(device):
    """In order. Shares of twelve minutes: a minute, four, one and a half, two, a minute and a half, and what is left."""
    short = ["--short"] if device == "cpu" else []
    return [
        Step("calibration", [sys.executable, "-m", "stoker", "calibrate-runs", "--device", device, "--budget", "{budget}s",
                             "--out", "{folder}/" + CALIBRATION], 0.125, 60),
        _training(device, 0, 0.34),
        _training(device, 1, 0.12),
        Step("memory", [sys.executable, "scripts/measure-memory", "--device", device, "--budget", "{budget}", *short,
                        "-o", "{folder}"], 0.2),
        *_watch(device),
        Step("time", [sys.executable, "scripts/measure-time", "--device", device, "--budget", "{budget}s", "-o", "{folder}"], 1.0),
    ]
