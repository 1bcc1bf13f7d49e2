"""What the script tells PyTorch's allocator and cuBLAS, by the environment or by torch.cuda: the forecast takes it over."""

from __future__ import annotations

import os

from ...plain import percent
from .. import sites

_VARIABLES = {"PYTORCH_CUDA_ALLOC_CONF": "alloc-conf", "PYTORCH_ALLOC_CONF": "alloc-conf", "CUBLAS_WORKSPACE_CONFIG": "cublas-workspace"}


def install(world) -> None:
    """Notes the variables that the script sets itself; those of the shell are read by whoever forecasts."""
    kind = type(os.environ)
    original = kind.__setitem__

    def __setitem__(self, name, value):
        original(self, name, value)
        site = sites.here(2)
        if name in _VARIABLES and site.line and value:
            world.found(_VARIABLES[name], value, f"{name}={value}", site)

    kind.__setitem__ = __setitem__


def settings(world):
    """torch.cuda.memory._set_allocator_settings."""
    def set_settings(text):
        world.found("alloc-conf", text, f"allocator settings {text}", sites.here(2))

    return set_settings


def fraction(world):
    """torch.cuda.set_per_process_memory_fraction."""
    def set_fraction(share, device=None):
        world.found("memory-fraction", float(share), f"{percent(share)} of the GPU's memory", sites.here(2))

    return set_fraction
