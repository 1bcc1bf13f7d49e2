"""What a user's own kernel does, said by its name: what it writes, how many FLOPs and bytes.

    @stoker.kernel(writes=["out_ptr"], flops=lambda a: 2 * a["x_ptr"].numel())
    @triton.jit
    def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr): ...

Where Triton is not installed, or tensors have no values, a launch of the kernel then counts as one that reads its other
tensors and writes these. A kernel without a registration is refused.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import CaptureError


@dataclass(frozen=True)
class Registration:
    """`flops` and `moved` (bytes) are numbers, or functions of a dict of the launch's arguments."""

    writes: tuple
    flops: object = 0
    moved: object = None  # None: each tensor once
    products: bool = False  # on tensor cores
    partly: bool = False  # a launch may leave some of `writes` out


registered: dict[str, Registration] = {}
unknown: Callable[[str, Callable], Registration] | None = None  # what a kernel is taken for of which nothing is said


def kernel(name: str | None = None, *, writes: str | Sequence[str], flops: float | Callable[[dict], float] = 0,
           bytes: float | Callable[[dict], float] | None = None, products: bool = False) -> Callable:
    """Registers a kernel: as a decorator of its function, or by name with kernel("name", ...).

    writes    names of the arguments that it writes; its other tensors are read
    flops     a number, or a function of a dict of the launch's arguments (tensors and numbers by name)
    bytes     what it moves to and from memory, likewise; default: every tensor once
    products  its FLOPs are matrix products, on tensor cores where the type allows them
    """
    written = (writes,) if isinstance(writes, str) else tuple(writes)
    if not written or not all(isinstance(w, str) for w in written):
        raise CaptureError("stoker.kernel: writes names the arguments that the kernel writes, one or more: writes=[\"out_ptr\"]")
    for what, value in (("flops", flops), ("bytes", bytes)):
        if value is not None and not callable(value) and (not isinstance(value, numbers.Real) or value < 0):
            raise CaptureError(f"stoker.kernel: {what}={value!r} is neither a number from 0 up nor a function of the arguments")
    made = Registration(written, flops, bytes, bool(products))

    def remember(function):
        registered[_name_of(function)] = made
        return function

    if name is None:
        return remember
    registered[str(name)] = made
    return remember


def _name_of(function) -> str:
    for holder in (function, getattr(function, "fn", None), getattr(getattr(function, "fn", None), "fn", None)):
        found = getattr(holder, "__name__", None)
        if found:
            return found
    raise CaptureError("stoker.kernel decorates a function, or what triton.jit or triton.autotune makes of one; else give its name")


def launch(name: str, function, args: tuple, kwargs: dict) -> None:
    """One launch on fake tensors, recorded as what was registered."""
    import torch

    known = registered.get(name)
    if known is None and unknown is not None:
        known = registered[name] = unknown(name, function)
    if known is None:
        raise CaptureError(f"the Triton kernel {name} does not run on tensors without values: say what it does, @stoker.kernel(writes="
                           f"[\"out_ptr\"], flops=..., bytes=...) above its definition, or stoker.kernel(\"{name}\", writes=...)")
    arguments = _arguments(function, args, kwargs)
    for written in known.writes:
        if not isinstance(arguments.get(written), torch.Tensor) and not known.partly:
            raise CaptureError(f"stoker.kernel: {name} was launched without a tensor {written}, which it is said to write (it got: "
                               f"{', '.join(arguments) or 'nothing'})")
    tensors = {key: value for key, value in arguments.items() if isinstance(value, torch.Tensor)}
    moved = sum(t.numel() * t.element_size() for t in tensors.values()) if known.moved is None else known.moved
    values = [_number(name, what, value, arguments) for what, value in (("flops", known.flops), ("bytes", moved))]
    operator = torch.ops.stoker.product_kernel_ if known.products else torch.ops.stoker.kernel_
    operator([t for key, t in tensors.items() if key not in known.writes], [tensors[w] for w in known.writes if w in tensors], *values)


def _arguments(function, args: tuple, kwargs: dict) -> dict:
    names = [n for n in inspect.signature(function).parameters]
    return {**dict(zip(names, args)), **kwargs}


def _number(name: str, what: str, value, arguments: dict) -> int:
    if callable(value):
        try:
            value = value(arguments)
        except Exception as error:
            raise CaptureError(f"stoker.kernel: {what} of {name} raised {type(error).__name__}: {error}") from error
    if not isinstance(value, numbers.Real) or value < 0:
        raise CaptureError(f"stoker.kernel: {what} of {name} is {value!r}, which is no number from 0 up")
    return int(value)
