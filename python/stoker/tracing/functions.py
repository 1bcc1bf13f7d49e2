"""Stands in for a few functions of torch's Python surface, wherever the model got them from."""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode

from . import attention, ctc, packed, packed_cpu, rnn


class AbstractFunctions(TorchFunctionMode):
    """Routes attention and recurrent layers to operators that a capture can hold."""

    def __init__(self, recorder):
        super().__init__()
        self._recorder = recorder

    def __enter__(self):
        # A mode is off inside of functions that it was asked about (multi_head_attention_forward is one), so the
        # name that these look up is replaced as well.
        functional = torch.nn.functional
        self._original = functional.scaled_dot_product_attention
        functional.scaled_dot_product_attention = self._attention
        return super().__enter__()

    def __exit__(self, *exception):
        torch.nn.functional.scaled_dot_product_attention = self._original
        return super().__exit__(*exception)

    def _attention(self, *args, **kwargs):
        out = attention.attention(*args, **kwargs)
        if out is not NotImplemented:
            return out
        self._recorder.math_attention += 1
        with torch._C.DisableTorchFunction():  # or it would be counted again
            return self._original(*args, **kwargs)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch._C._nn.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        if func in ctc.FUNCTIONS:
            return ctc.loss(*args, **kwargs)
        if func is packed.PACK:
            return packed.pack(self._recorder, *args, **kwargs)
        if func is packed.PAD:
            return packed.pad(self._recorder, *args, **kwargs)
        if func in rnn.FUNCTIONS:
            sizes = None
            if packed.is_packed(args):
                sizes = packed.sizes_of(self._recorder, args[1])
                args = (args[0], *args[2:])
            out = rnn.run(rnn.FUNCTIONS[func], *args, batch_sizes=sizes, **kwargs)
            if out is not NotImplemented:
                return out
        return func(*args, **kwargs)


class PackedFunctions(TorchFunctionMode):
    """Packed sequences on a CPU: what reads their lengths there, and the recurrent layers that go over them."""

    def __init__(self, recorder):
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is packed.PACK:
            return packed.pack(self._recorder, *args, **kwargs)
        if func is packed.PAD:
            return packed.pad(self._recorder, *args, **kwargs)
        if func in rnn.FUNCTIONS and packed.is_packed(args):
            sizes = packed.sizes_of(self._recorder, args[1])
            return packed_cpu.run(rnn.FUNCTIONS[func], args[0], sizes, *args[2:], **kwargs)
        return func(*args, **kwargs)
