"""Recurrent layers as cuDNN's one operator: aten::_cudnn_rnn, with the weights in one buffer.

nn.GRU and its like call a kernel that fake tensors do not have. cuDNN's operator has a fake implementation for the
forward; the backward is answered here: gradients of input and states, and one buffer that all weight gradients view.
"""

from __future__ import annotations

import contextlib

import torch

from . import operators

_VF = torch._C._VariableFunctions
FUNCTIONS = {_VF.rnn_relu: 0, _VF.rnn_tanh: 1, _VF.lstm: 2, _VF.gru: 3}  # cuDNN's numbers of the modes
LSTM = 2


def flatten_weights(module: torch.nn.Module, make) -> dict:
    """For each recurrent layer in `module`: its parameters as views of one buffer, as on CUDA (flatten_parameters()).

    `make(size, dtype)` allocates the buffer. Returns id(old parameter) -> tensor to use instead.
    """
    views = {}
    for layer in module.modules():
        if not isinstance(layer, torch.nn.RNNBase):
            continue
        weights = [layer._parameters.get(name) for name in layer._flat_weights_names]
        if any(w is None for w in weights) or any(id(w) in views for w in weights):
            continue  # no parameters of the layer's own: the code makes them in each forward, and cuDNN copies them
        buffer = make(sum(w.numel() for w in weights), weights[0].dtype)
        offset = 0
        for weight in weights:
            views[id(weight)] = buffer[offset:offset + weight.numel()].view(weight.shape)
            offset += weight.numel()
    return views


class _CastWeights(torch.autograd.Function):
    """What autocast does to a recurrent layer: one new half-precision buffer, and each weight copied into it."""

    @staticmethod
    def forward(ctx, dtype, *weights):
        ctx.dtype = weights[0].dtype
        buffer = torch.empty(sum(w.numel() for w in weights), dtype=dtype, device=weights[0].device)
        views, offset = [], 0
        for weight in weights:
            view = buffer[offset:offset + weight.numel()].view(weight.shape)
            view.copy_(weight)
            views.append(view)
            offset += weight.numel()
        return tuple(views)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *(g.to(ctx.dtype) for g in grads))


@contextlib.contextmanager
def _no_autocast():
    enabled = torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", False)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", enabled)


def run(mode, input, hx, weights, has_biases, layers, dropout, train, bidirectional, batch_first=False, batch_sizes=None):
    """Stands in for torch.gru, torch.lstm, torch.rnn_tanh and torch.rnn_relu.

    `batch_sizes` are those of a packed sequence, whose words `input` has one below the other.
    """
    if not isinstance(has_biases, bool) or input.device.type != "cuda":
        return NotImplemented  # on CPU the plain path works
    state, cell = (hx[0], hx[1]) if mode == LSTM else (hx, None)
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        input, state = input.to(dtype), state.to(dtype)
        cell = None if cell is None else cell.to(dtype)
        if weights[0].dtype is torch.float32:
            weights = _CastWeights.apply(dtype, *weights)
    hidden = weights[1].shape[0] // {LSTM: 4, 3: 3}.get(mode, 1)
    per_layer = len(weights) // (layers * (2 if bidirectional else 1))
    projected = hidden if weights[1].shape[1] == hidden else weights[1].shape[1]
    proj_size = 0 if projected == hidden else projected
    with _no_autocast():  # the casts are done; a CUDA build's own would ask the driver for the GPU's properties
        out = torch._cudnn_rnn(input, list(weights), per_layer, _whole_buffer(weights), state, cell, mode, hidden,
                               proj_size, layers, batch_first, float(dropout), bool(train), bool(bidirectional),
                               batch_sizes or [], None)
    return (out[0], out[1], out[2]) if mode == LSTM else (out[0], out[1])


def _whole_buffer(weights):
    """The buffer that the weights are views of; a new one (that cuDNN would copy them into) if they lie apart."""
    total = sum(w.numel() for w in weights)
    with torch.no_grad():
        if weights[0].untyped_storage().nbytes() == total * weights[0].element_size():
            return weights[0].detach().as_strided((total,), (1,), 0)
        return torch.empty(total, dtype=weights[0].dtype, device=weights[0].device)


def _backward(input, weight, weight_stride0, weight_buf, hx, cx, output, grad_output, grad_hy, grad_cy, mode,
              hidden_size, proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes,
              dropout_state, reserve, output_mask):
    """aten::_cudnn_rnn_backward under fake tensors."""
    dx = torch.empty_like(input, memory_format=torch.contiguous_format)
    dhx = torch.empty_like(hx, memory_format=torch.contiguous_format)
    dcx = torch.empty_like(cx, memory_format=torch.contiguous_format) if cx is not None else None
    if not output_mask[3]:
        return dx, dhx, dcx, []
    buffer = torch.empty(sum(w.numel() for w in weight), dtype=weight[0].dtype, device=weight[0].device)
    grads, offset = [], 0
    for one in weight:
        grads.append(buffer[offset:offset + one.numel()].view(one.shape))
        offset += one.numel()
    return dx, dhx, dcx, grads


def recorded_inputs(args) -> tuple:
    """The arguments as the step file has them: the buffer, and not each weight as well."""
    return (args[0], *args[2:])


def recorded_outputs(out) -> tuple:
    """Forward: output, hy, (cy), the reserve. Backward: gradients of input and states, and of the buffer."""
    if isinstance(out[3], torch.Tensor):
        return tuple(t for t in out[:3] if t.numel()) + (out[3],)
    return tuple(t for t in out[:3] if t is not None and t.numel()) + tuple(out[3][:1])


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    """nn.GRUCell's fused cell: the new state, and five values a unit for the backward (ATen/native/cuda/RNN.cu)."""
    rows, units = hx.shape
    return hx.new_empty((rows, units)), hx.new_empty((rows, 5 * units))


def _gru_cell_backward(grad_hy, workspace, has_bias):
    rows, units = grad_hy.shape
    gates = [grad_hy.new_empty((rows, 3 * units)) for _ in range(2)]
    biases = [grad_hy.new_empty((3 * units,)) if has_bias else None for _ in range(2)]
    return (*gates, grad_hy.new_empty((rows, units)), *biases)


for _name, _function in (("_cudnn_rnn_backward", _backward), ("_thnn_fused_gru_cell", _gru_cell),
                         ("_thnn_fused_gru_cell_backward", _gru_cell_backward)):
    if hasattr(torch.ops.aten, _name):
        operators.HANDLERS[getattr(torch.ops.aten, _name).default] = _function
