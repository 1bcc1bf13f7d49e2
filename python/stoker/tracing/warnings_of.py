"""What is wrong with a training step though it runs: parameters that no gradient reaches, by module, and why."""

from __future__ import annotations

import torch
from torch.utils import checkpoint

MOST_MODULES = 6


class Training:
    """Watches one step: which parameters received a gradient, and checkpoints that cut it off."""

    def __init__(self, recorder, model):
        self._recorder = recorder
        self._parameters = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self._reached: set[int] = set()
        self._cut: list[str] = []  # modules in which a checkpoint had no input that needs a gradient

    def __enter__(self):
        self._handles = []
        for number, (_, parameter) in enumerate(self._parameters):
            def hook(parameter, number=number):
                self._reached.add(number)

            self._handles.append(parameter.register_post_accumulate_grad_hook(hook))
        self._forward = checkpoint.CheckpointFunction.forward
        original = self._forward

        def forward(ctx, run_function, preserve_rng_state, *args):
            tensors = [a for a in args if isinstance(a, torch.Tensor)]
            if not any(t.requires_grad for t in tensors):
                self._cut.append(self._recorder.where())
            return original(ctx, run_function, preserve_rng_state, *args)

        checkpoint.CheckpointFunction.forward = staticmethod(forward)
        return self

    def __exit__(self, *exception):
        checkpoint.CheckpointFunction.forward = staticmethod(self._forward)
        for handle in self._handles:
            handle.remove()

    def sentences(self) -> list:
        missing = [pair for number, pair in enumerate(self._parameters) if number not in self._reached]
        if not missing:
            return []
        modules = _modules(missing, self._parameters)
        shown = ", ".join(modules[:MOST_MODULES]) + (f" and {len(modules) - MOST_MODULES} more" if len(modules) > MOST_MODULES else "")
        share = sum(p.numel() for _, p in missing) / sum(p.numel() for _, p in self._parameters)
        text = (f"{len(missing)} of {len(self._parameters)} parameters that require a gradient get none ({_share(share)} of the weights): "
                f"{shown}; memory and time are those of a step that does not train them")
        if self._cut:
            text += ("; a torch.utils.checkpoint with use_reentrant=True had no input that requires a gradient, which cuts it off: "
                     "use use_reentrant=False")
        return [text]


def _share(share: float) -> str:
    """Never rounded to none or to all."""
    rounded = round(100 * share)
    if rounded == 100 and share < 1:
        return "over 99 %"
    return f"{rounded} %" if rounded else "under 1 %"


def _modules(missing, everything) -> list:
    """The outermost modules of which no parameter received a gradient; single parameters by their names."""
    names = [name for name, _ in missing]
    reached = {name for name, _ in everything} - set(names)
    found: list[str] = []
    for name in names:
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            prefix = ".".join(parts[:depth])
            if not any(other == prefix or other.startswith(prefix + ".") for other in reached):
                if prefix not in found:
                    found.append(prefix)
                break
    return found
