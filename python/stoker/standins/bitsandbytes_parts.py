"""What Stoker stands in for of bitsandbytes: linear layers in 4 bits, and optimizers whose state has 8."""

from __future__ import annotations

import torch
from torch import nn

from ..errors import CaptureError
from . import kernels

BLOCK = 64  # weights that share a scale (functional.py, quantize_4bit)
SCALES_BLOCK = 256  # scales that share a scale where they are quantised too (compress_statistics)
CODE_4BIT, CODE_8BIT = 16, 256  # values that the bits stand for

kernels.define("dequantize_4bit(Tensor packed, Tensor scales, ScalarType dtype, SymInt rows, SymInt columns) -> Tensor",
               lambda packed, scales, dtype, rows, columns: packed.new_empty((rows, columns), dtype=dtype))
kernels.define("dequantize_scales(Tensor scales, Tensor scales_of_scales) -> Tensor",
               lambda scales, scales_of_scales: scales.new_empty(scales.shape, dtype=torch.float32))


def _numbers(count: int) -> torch.Tensor:
    """FP32 numbers beside the weights, as whole numbers of their width: a model in half precision keeps theirs."""
    return torch.zeros(count, dtype=torch.int32)


class _Product(torch.autograd.Function):
    """A product with weights that are dequantised for it, and once more for the gradient of its input; they get none, and
    neither they nor the input are kept (autograd/_functions.py, MatMul4Bit)."""

    @staticmethod
    def forward(ctx, x, bias, layer, dtype):
        ctx.layer, ctx.dtype = layer, dtype
        return torch.nn.functional.linear(x, layer.dequantized(dtype), bias)

    @staticmethod
    def backward(ctx, grad):
        of_input = torch.matmul(grad, ctx.layer.dequantized(ctx.dtype)) if ctx.needs_input_grad[0] else None
        of_bias = grad.reshape(-1, grad.shape[-1]).sum(0) if ctx.needs_input_grad[1] else None
        return of_input, of_bias, None, None


class Linear4bit(nn.Module):
    """bitsandbytes.nn.Linear4bit after it was moved to the GPU, which quantises it: frozen, two weights a byte."""

    def __init__(self, input_features, output_features, bias=True, compute_dtype=None, compress_statistics=True, quant_type="fp4",
                 quant_storage=torch.uint8, device=None):
        super().__init__()
        self.in_features, self.out_features = input_features, output_features
        self.compute_dtype = compute_dtype
        count = input_features * output_features
        width = torch.empty((), dtype=quant_storage).element_size()
        self.weight = nn.Parameter(torch.zeros(-(-count // (2 * width)), 1, dtype=quant_storage), requires_grad=False)
        scales = -(-count // BLOCK)
        self.nested = compress_statistics
        self.register_buffer("absmax", torch.zeros(scales, dtype=torch.uint8) if self.nested else _numbers(scales), persistent=False)
        self.register_buffer("code", _numbers(CODE_4BIT), persistent=False)
        if self.nested:
            self.register_buffer("absmax_of_absmax", _numbers(-(-scales // SCALES_BLOCK)), persistent=False)
            self.register_buffer("code_of_absmax", _numbers(CODE_8BIT), persistent=False)
            self.register_buffer("offset", _numbers(1), persistent=False)
        self.bias = nn.Parameter(torch.zeros(output_features)) if bias else None

    def dequantized(self, dtype):
        scales = kernels.ops.dequantize_scales(self.absmax, self.absmax_of_absmax) if self.nested else self.absmax
        return kernels.ops.dequantize_4bit(self.weight, scales, dtype, self.out_features, self.in_features)

    def forward(self, x):
        given = x.dtype
        x = x.to(self._dtype(x))
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return _Product.apply(x, bias, self, x.dtype).to(given)

    def _dtype(self, x):
        if self.compute_dtype is not None:
            return self.compute_dtype
        return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype


class LinearNF4(Linear4bit):
    def __init__(self, input_features, output_features, bias=True, compute_dtype=None, compress_statistics=True,
                 quant_storage=torch.uint8, device=None):
        super().__init__(input_features, output_features, bias, compute_dtype, compress_statistics, "nf4", quant_storage, device)


class LinearFP4(LinearNF4):
    pass


def quantize_linears(model: nn.Module, compute_dtype=None, compress_statistics=True, skip=("lm_head",)) -> nn.Module:
    """Puts Linear4bit in place of every linear layer of `model`, as transformers does with load_in_4bit; `skip`: names, or
    last parts of names, of those that stay."""
    for name, module in list(model.named_modules()):
        if type(module) is not nn.Linear or name in skip or name.rpartition(".")[2] in skip:
            continue
        parent = model.get_submodule(name.rpartition(".")[0]) if "." in name else model
        made = Linear4bit(module.in_features, module.out_features, module.bias is not None, compute_dtype, compress_statistics, "nf4")
        if module.bias is not None:
            made.bias = module.bias
        setattr(parent, name.rpartition(".")[2], made)
    return model


class Linear8bitLt:
    def __init__(self, *args, **kwargs):
        raise CaptureError("bitsandbytes.nn.Linear8bitLt takes columns apart by the values in them, and a capture has none: it has no "
                           "stand-in; capture with Linear4bit, or with plain linear layers")


class _EightBit(torch.optim.Optimizer):
    """Holds groups only: what its step allocates and moves is known from its name."""

    def step(self, closure=None):
        return closure() if closure is not None else None


def _named(name: str, **own):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, optim_bits=8,
                 args=None, min_8bit_size=4096, percentile_clipping=100, block_wise=True, is_paged=False, **more):
        if percentile_clipping != 100 or not block_wise or min_8bit_size != 4096:
            raise CaptureError(f"bitsandbytes.optim.{name}: Stoker's stand-in knows blocks, min_8bit_size=4096 and no percentile "
                               "clipping: leave these arguments out")
        _EightBit.__init__(self, params, {**own, "lr": lr, "weight_decay": weight_decay, **more})

    return type(name, (_EightBit,), {"__init__": __init__, "__module__": "bitsandbytes.optim"})


def _full(kind):
    """State in 32 bits, one kernel a tensor without temporaries: as PyTorch's fused optimizer allocates."""

    def make(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, optim_bits=32, **more):
        if optim_bits == 8:
            return _OPTIMIZERS[f"{kind.__name__}8bit"](params, lr=lr, weight_decay=weight_decay)
        return kind(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True)

    return make


_KINDS = ("Adam", "AdamW", "Lion", "RMSprop", "Adagrad")
_OPTIMIZERS = {f"{paged}{kind}8bit": _named(f"{paged}{kind}8bit") for kind in _KINDS for paged in ("", "Paged")}
_OPTIMIZERS["SGD8bit"] = _named("SGD8bit", momentum=0.9)
_OPTIMIZERS |= {f"{paged}{kind.__name__}{bits}": _full(kind) for kind in (torch.optim.Adam, torch.optim.AdamW)
                for paged in ("", "Paged") for bits in ("", "32bit")}
_NN = {c.__name__: c for c in (Linear4bit, LinearNF4, LinearFP4, Linear8bitLt)}
MODULES = {"bitsandbytes": {"__version__": "0.45.0+stoker"}, "bitsandbytes.nn": _NN, "bitsandbytes.nn.modules": _NN,
           "bitsandbytes.optim": _OPTIMIZERS}
