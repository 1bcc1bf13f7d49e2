"""What Stoker stands in for of Triton: kernels that are launched by name (custom_kernels.py), and none of its language."""

from __future__ import annotations

import types

from . import custom_kernels, kernels


def _nothing(*args):
    return None


for _name in ("kernel_", "product_kernel_"):
    kernels.define(f"{_name}(Tensor[] reads, Tensor(a!)[] writes, SymInt flops, SymInt moved) -> ()", _nothing)


class Kernel:
    """What triton.jit makes of a function: kernel[grid](...) is one launch."""

    def __init__(self, fn):
        self.fn, self.__name__ = fn, fn.__name__
        self.__doc__, self.__module__ = fn.__doc__, fn.__module__

    def __getitem__(self, grid):
        return self._launch

    def run(self, *args, grid=None, warmup=False, **kwargs):
        return self._launch(*args, **kwargs)

    def _launch(self, *args, **kwargs):
        custom_kernels.launch(self.__name__, self.fn, args, {k: v for k, v in kwargs.items() if k not in _OPTIONS})

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{self.__name__} is a Triton kernel: launch it with {self.__name__}[grid](...)")


_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")


def jit(fn=None, **options):
    return Kernel(fn) if fn is not None else Kernel


def _passing(*args, **options):
    """autotune, heuristics: which variant runs decides nothing that is modelled."""
    return lambda kernel: kernel


class Config:
    def __init__(self, kwargs, **options):
        self.kwargs = kwargs


def cdiv(x, y):
    return -(-x // y)


def next_power_of_2(n):
    return 1 << (n - 1).bit_length() if n > 0 else 1


class _Language(types.ModuleType):
    """Names in the bodies of kernels, which never run; annotations are evaluated."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class constexpr:
    def __init__(self, value=None):
        self.value = value


_LANGUAGE = {"constexpr": constexpr, "__getattr__": lambda name: _Language("triton.language").__getattr__(name)}
MODULES = {
    "triton": {"jit": jit, "autotune": _passing, "heuristics": _passing, "Config": Config, "cdiv": cdiv,
               "next_power_of_2": next_power_of_2, "JITFunction": Kernel, "__version__": "3.0.0+stoker"},
    "triton.language": _LANGUAGE,
}
