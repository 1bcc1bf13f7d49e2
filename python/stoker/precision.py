"""The precisions of a capture: autocast, or the model cast as a whole."""

from __future__ import annotations

import contextlib

import torch

AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
CAST = {"fp16": torch.float16, "bf16": torch.bfloat16}
NAMES = ("fp32", *AUTOCAST, *CAST)


@contextlib.contextmanager
def autocast(precision: str, device_type: str):
    """torch.autocast as with a GPU: set directly, since the public one switches itself off without."""
    dtype = AUTOCAST.get(precision)
    if dtype is None:
        yield
        return
    before = (torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type))
    torch.set_autocast_enabled(device_type, True)
    torch.set_autocast_dtype(device_type, dtype)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device_type, before[0])
        torch.set_autocast_dtype(device_type, before[1])


def parameter_dtype(dtype: torch.dtype, precision: str) -> torch.dtype:
    """The dtype that a floating-point parameter, buffer or input has at this precision."""
    return CAST.get(precision, dtype) if dtype.is_floating_point else dtype
