"""Packed sequences: with real lengths where the code wrote them down, else as long as the longest.

PyTorch's own functions read the lengths out of memory, which fake tensors have none of. These do the same work by the same
operators (ATen/native/PackedSequence.cpp), and hand the layer on to cuDNN's operator.
"""

from __future__ import annotations

import math

import torch

from .. import places
from ..errors import DataDependentError

_VF = torch._C._VariableFunctions
PACK, PAD = _VF._pack_padded_sequence, _VF._pad_packed_sequence


def pack(recorder, input, lengths, batch_first):
    """torch._pack_padded_sequence: (data, batch sizes), the sequences' words in order of time."""
    batch, longest = (input.shape[0], input.shape[1]) if batch_first else (input.shape[1], input.shape[0])
    known = recorder.values.real(lengths)
    numbers = recorder.values.on_host(known.tolist) if known is not None else [_assumed(recorder, longest)] * batch
    sizes = [sum(n > step for n in numbers) for step in range(max(numbers))]
    data = _Pack.apply(input, tuple(sizes), bool(batch_first))
    return data, torch.tensor(sizes, device="cpu")


def pad(recorder, data, batch_sizes, batch_first, padding_value, total_length):
    """torch._pad_packed_sequence: (padded, lengths)."""
    sizes = sizes_of(recorder, batch_sizes)
    length = total_length if total_length > 0 else len(sizes)
    padded = data.new_full((length, sizes[0], *data.shape[1:]), padding_value)
    offset = 0
    for start, end, rows in _runs(sizes):
        count = (end - start) * rows
        padded[start:end, :rows] = data[offset:offset + count].view(end - start, rows, *data.shape[1:])
        offset += count
    lengths = torch.tensor([sum(size > row for size in sizes) for row in range(sizes[0])], device="cpu")
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def sizes_of(recorder, batch_sizes) -> list:
    """How many sequences have a word at each step."""
    known = recorder.values.real(batch_sizes)
    if known is None:
        raise _refused(recorder)
    return recorder.values.on_host(known.tolist)


def is_packed(args) -> bool:
    """Whether a recurrent function was called as (data, batch_sizes, hx, weights, ...)."""
    return len(args) > 3 and isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple))


def _assumed(recorder, longest: int) -> int:
    """The length of each sequence, where nothing is known: that of the longest, unless --assume says otherwise."""
    place = places.here()
    said = recorder.assumptions.rows(place)
    length = longest
    if isinstance(said, places.Share):
        length = max(1, math.ceil(said.of_all * longest))
    elif isinstance(said, places.AtMost):
        length = max(1, min(said.rows, longest))
    elif isinstance(said, int) and not isinstance(said, bool):
        length = said
    if not 1 <= length <= longest:
        raise DataDependentError(f"--assume {place}={said}: a sequence packed there has 1 to {longest} words")
    if place is not None:
        recorder.reads[place] = "sequences as long as the longest" if length == longest else f"sequences of {length} words"
    return length


def _refused(recorder):
    return DataDependentError(f"the data decides the batch sizes of a packed sequence {recorder.at()}, and a capture has no values: "
                              "make it with pack_padded_sequence, or pad to one length and use a mask")


def _runs(sizes):
    """(first step, end, sequences) of neighbouring steps that have as many sequences."""
    start = 0
    for step in range(1, len(sizes) + 1):
        if step == len(sizes) or sizes[step] != sizes[start]:
            yield start, step, sizes[start]
            start = step


class _Pack(torch.autograd.Function):
    """One slice for each run of steps, made contiguous, and all joined; the backward copies step by step into zeros."""

    @staticmethod
    def forward(ctx, input, sizes, batch_first):
        ctx.sizes, ctx.batch_first, ctx.shape = sizes, batch_first, input.shape
        steps = input.transpose(0, 1) if batch_first else input
        parts = [steps[start:end, :rows].contiguous().view(-1, *steps.shape[2:]) for start, end, rows in _runs(sizes)]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        found = grad.new_zeros(ctx.shape)
        steps = found.transpose(0, 1) if ctx.batch_first else found
        # PyTorch copies each step by itself. Where all steps are alike they are one copy here, so that the length may be
        # a dimension of the step file.
        alike = len(set(ctx.sizes)) == 1
        parts = list(_runs(ctx.sizes)) if alike else [(i, i + 1, rows) for i, rows in enumerate(ctx.sizes)]
        offset = 0
        for start, end, rows in parts:
            count = (end - start) * rows
            steps[start:end, :rows].copy_(grad[offset:offset + count].view(end - start, rows, *grad.shape[1:]))
            offset += count
        return found, None, None
