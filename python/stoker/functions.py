"""Stands in for a few functions of torch's Python surface, wherever the model got them from."""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode

from . import attention, rnn


class AbstractFunctions(TorchFunctionMode):
    """Routes attention and recurrent layers to operators that a capture can hold."""

    def __init__(self, recorder):
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch._C._nn.scaled_dot_product_attention:
            out = attention.attention(func, *args, **kwargs)
            if out is not NotImplemented:
                return out
            self._recorder.math_attention += 1
        elif func in rnn.FUNCTIONS:
            out = rnn.run(rnn.FUNCTIONS[func], *args, **kwargs)
            if out is not NotImplemented:
                return out
        return func(*args, **kwargs)
