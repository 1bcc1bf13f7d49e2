"""What has to change with the batch: rules with where they are known to break."""

from __future__ import annotations

import dataclasses
import math

RULES = ("linear", "sqrt", "adam")
# Goyal et al. 2017: ResNet-50 on ImageNet keeps its accuracy up to this global batch, and not beyond.
LINEAR_HOLDS_TO = 8192


@dataclasses.dataclass
class ScaledBatch:
    """Settings for another batch. `notes` say what the rule rests on and where it breaks."""

    rule: str
    lr: float
    per_device_batch: int
    global_batch: int
    factor: float
    betas: tuple | None = None
    eps: float | None = None
    warmup_steps: int = 0
    notes: tuple = ()

    def __str__(self) -> str:
        text = f"batch {self.per_device_batch} a device, {self.global_batch} in all ({self.factor:g} times): lr {self.lr:.4g}"
        if self.betas:
            text += f", betas ({self.betas[0]:.6g}, {self.betas[1]:.6g}), eps {self.eps:.3g}"
        if self.warmup_steps:
            text += f", warm-up of {self.warmup_steps} steps"
        return text + f" (rule {self.rule})" + "".join(f"\n  {note}" for note in self.notes)


def scale_batch(lr: float, old: int, new: int, *, rule: str | None = None, optimizer: str = "sgd",
                betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, devices: int = 1, accumulation: int = 1,
                samples: int | None = None, noise_scale: float | None = None) -> ScaledBatch:
    """The learning rate, and what else, when the batch changes from `old` to `new`.

    lr             the rate that belongs to `old`
    old, new       samples of one device and one backward; `devices` and `accumulation` make the global batch of them. One
                   device's batch is what PyTorch's DataLoader is given: DDP does not part it
    rule           "linear" (Goyal et al. 2017: lr times k, with warm-up), "sqrt" (Krizhevsky 2014: lr times the root of k), "adam"
                   (Malladi et al. 2022: the root, with betas and eps); by default linear for sgd and adam for Adam and AdamW
    samples        of an epoch: the warm-up is five of them
    noise_scale    of gradients, as stoker.noise_scale measures it
    """
    if min(lr, old, new, devices, accumulation) <= 0:
        raise ValueError("lr, batches, devices and accumulation must be above 0")
    rule = rule or ("adam" if optimizer.lower().startswith("adam") else "linear")
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, not {rule!r}")
    k = new / old
    whole = round(new * devices * accumulation)
    result = ScaledBatch(rule, lr, round(new), whole, k)
    notes = [f"{round(new)} samples a device x {devices} {'device' if devices == 1 else 'devices'} x {accumulation} micro-steps = {whole}"]
    if rule == "linear":
        result.lr = lr * k
        if k > 1 and samples:
            result.warmup_steps = math.ceil(5 * samples / whole)
        if k > 1:
            notes.append(f"warm up from {lr:.4g} to {result.lr:.4g} over five epochs; batch normalisation keeps the device's batch")
        if whole > LINEAR_HOLDS_TO:
            notes.append(f"known to break: above {LINEAR_HOLDS_TO:,} in all, where ResNet-50 on ImageNet lost accuracy")
    else:
        result.lr = lr * math.sqrt(k)
    if rule == "adam":
        moved = tuple(1 - k * (1 - beta) for beta in betas)
        if min(moved) < 1e-9:  # 1 - 0.1 * 10 is no exact 0
            notes.append(f"known to break: k (1 - beta) is {max(k * (1 - b) for b in betas):.3g}, and must stay below 1; betas are kept")
            moved = tuple(betas)
        result.betas, result.eps = moved, eps / math.sqrt(k)
    if noise_scale:
        gain = (1 + noise_scale / (old * devices * accumulation)) / (1 + noise_scale / whole)
        before = round(old * devices * accumulation)
        notes.append(f"at a noise scale of {noise_scale:.4g} a step of {whole} is worth {gain:.3g} steps of {before}")
        if whole > noise_scale and rule == "linear":
            result_lr = lr * gain
            notes.append(f"known to break: the batch is above the noise scale, where the best rate saturates; {result_lr:.4g} by that")
    result.notes = tuple(notes)
    return result
