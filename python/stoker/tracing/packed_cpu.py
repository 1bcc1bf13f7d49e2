"""Recurrent layers over packed sequences on a CPU, step by step as PackedLayer of ATen/native/RNN.cpp does it.

PyTorch's own loop reads the batch sizes out of memory, which fake tensors have none of.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from .rnn import LSTM

GRU, TANH = 3, 1


def run(mode, data, sizes, hx, weights, has_biases, layers, dropout, train, bidirectional):
    """Stands in for torch.gru, torch.lstm, torch.rnn_tanh and torch.rnn_relu called with packed data of these batch sizes."""
    directions = 2 if bidirectional else 1
    each = len(weights) // (layers * directions)
    parts = [_Weights(weights[i * each:(i + 1) * each], has_biases) for i in range(layers * directions)]
    ends = []
    for layer in range(layers):
        outs = []
        for direction in range(directions):
            number = layer * directions + direction
            start = tuple(state[number] for state in hx) if mode == LSTM else (hx[number],)
            out, end = (_backwards if direction else _forwards)(mode, data, sizes, start, parts[number])
            outs.append(out)
            ends.append(end)
        data = torch.cat(outs, -1) if bidirectional else outs[0]
        if train and dropout > 0 and layer + 1 < layers:
            data = functional.dropout(data, dropout)
    return (data, *(torch.stack([end[i] for end in ends]) for i in range(len(ends[0]))))


class _Weights:
    def __init__(self, weights, has_biases):
        self.input, self.hidden = weights[:2]
        self.input_bias, self.hidden_bias = weights[2:4] if has_biases else (None, None)
        rest = weights[4 if has_biases else 2:]
        self.projection = rest[0] if rest else None


def _forwards(mode, data, sizes, state, weights):
    gates = functional.linear(data, weights.input, weights.input_bias)  # of all steps at once, as on every CPU
    outs, ended, offset = [], [], 0
    for rows in sizes:
        if rows < len(state[0]):
            ended.append(tuple(part[rows:] for part in state))
            state = tuple(part[:rows] for part in state)
        state = _cell(mode, gates[offset:offset + rows], state, weights)
        outs.append(state[0])
        offset += rows
    ended.append(state)
    return torch.cat(outs), tuple(torch.cat([end[i] for end in reversed(ended)]) for i in range(len(state)))


def _backwards(mode, data, sizes, start, weights):
    gates = functional.linear(data, weights.input, weights.input_bias)
    state, outs, offset = tuple(part[:sizes[-1]] for part in start), [], len(data)
    for rows in reversed(sizes):
        have = len(state[0])
        if rows > have:
            state = tuple(torch.cat([part, first[have:rows]]) for part, first in zip(state, start))
        offset -= rows
        state = _cell(mode, gates[offset:offset + rows], state, weights)
        outs.append(state[0])
    return torch.cat(outs[::-1]), state


def _cell(mode, gates, state, weights):
    """One step: the new state, what is handed on first."""
    hidden = functional.linear(state[0], weights.hidden, weights.hidden_bias)
    if mode == LSTM:
        enter, forget, cell, leave = hidden.add_(gates).chunk(4, 1)
        memory = (forget.sigmoid() * state[1]).add_(enter.sigmoid() * cell.tanh())
        out = leave.sigmoid() * memory.tanh()
        return (out if weights.projection is None else functional.linear(out, weights.projection)), memory
    if mode == GRU:
        given, kept = gates.chunk(3, 1), hidden.chunk(3, 1)
        reset, update = (kept[0] + given[0]).sigmoid_(), (kept[1] + given[1]).sigmoid_()
        new = (given[2] + kept[2] * reset).tanh_()
        return ((state[0] - new) * update + new,)
    total = hidden.add_(gates)
    return (total.tanh() if mode == TANH else total.relu(),)
