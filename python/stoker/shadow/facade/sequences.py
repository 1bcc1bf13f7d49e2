"""Packed sequences as the script finds them: every sequence is as long as the longest, which is said.

What a packed sequence holds depends on lengths; with all of them equal a recurrent layer is cuDNN's one operator, as for a
tensor that is not packed, and does the most work that it can have.
"""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.utils import rnn as packing

from ...tracing import rnn
from .. import sites


def install(world) -> None:
    if not world.on_gpu:
        return
    original = packing.pack_padded_sequence

    def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
        if not isinstance(input, FakeTensor):
            return original(input, lengths, batch_first, enforce_sorted)
        world.note(f"{sites.here(2)}: packed sequences are taken to be as long as the longest")
        padded = input.transpose(0, 1) if batch_first else input
        length, batch = padded.shape[:2]
        order = None if enforce_sorted else torch.arange(batch, device="cuda")
        rows = padded.clone(memory_format=torch.contiguous_format).view(length * batch, *padded.shape[2:])
        return packing.PackedSequence(rows, torch.full((length,), batch), order, order)

    packing.pack_padded_sequence = pack_padded_sequence


def run(func, args):
    """A recurrent layer of a packed sequence on the device; None where it is another one."""
    if len(args) < 5 or not isinstance(args[4], bool) or not isinstance(args[3], (list, tuple)):
        return None  # data, batch sizes, state, weights, has_biases ...; a padded one has input, state, weights, has_biases
    data, sizes, state, weights = args[:4]
    if not isinstance(data, FakeTensor) or not isinstance(sizes, torch.Tensor) or isinstance(sizes, FakeTensor):
        return None
    batch, length = int(sizes[0]), sizes.numel()
    out = rnn.run(rnn.FUNCTIONS[func], data.view(length, batch, -1), state, weights, *args[4:], batch_first=False)
    return out if out is NotImplemented else (out[0].reshape(length * batch, -1), *out[1:])
