"""torch.save and torch.load as the script finds them: nothing is kept, and what is read needs no GPU."""

from __future__ import annotations

import torch
from torch.utils import _pytree as pytree

from . import sites


def install(world) -> None:
    def save(*args, **kwargs):
        world.found("checkpoint-writes", True, "writes checkpoints", sites.here(2))

    original = torch.load

    def load(f, map_location=None, *args, **kwargs):
        wanted = map_location
        loaded = original(f, "cpu", *args, **kwargs)
        if not world.on_gpu or wanted is None or callable(wanted):
            return loaded
        try:
            device = torch.device(wanted) if not isinstance(wanted, dict) else torch.device("cuda")
        except (TypeError, RuntimeError):
            return loaded
        if device.type != "cuda":
            return loaded
        return pytree.tree_map(lambda leaf: leaf.to("cuda") if isinstance(leaf, torch.Tensor) else leaf, loaded)

    torch.save, torch.load = save, load
