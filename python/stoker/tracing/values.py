"""What the host learns of a tensor in a capture: the real value where it follows from no data, else a plausible one.

A capture has no data, but much that a model reads on the host comes from none: random choices, lengths that the code wrote
down, counters. Small tensors of that kind are computed for real beside the fake ones. Of others a guess that lies within the
range of the operator that made them is kept: softmax lies below 1, argmax is an index.
"""

from __future__ import annotations

import contextlib
import functools
import weakref

import torch
from torch._subclasses import fake_tensor

from . import operators, random_state

MOST_ELEMENTS = 4096  # of a tensor that is computed for real

# Operator -> the guess for its (first) output. Where an output is an index, the first there is.
_IN_RANGE = {
    "sigmoid": 0.5, "_softmax": 0.5, "hardsigmoid": 0.5, "tanh": 0.5, "sin": 0.5, "cos": 0.5, "erf": 0.5, "uniform": 0.5, "rand_like": 0.5,
    "rand": 0.5, "_log_softmax": -1.0, "argmax": 0, "argmin": 0, "argsort": 0, "multinomial": 0, "searchsorted": 0, "bucketize": 0,
}
_SECOND_IS_INDEX = {"topk", "sort", "max", "min", "median", "mode", "kthvalue", "cummax", "cummin"}
_RANDOM = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "uniform", "normal", "random", "bernoulli",
           "multinomial", "exponential", "geometric", "poisson", "cauchy", "log_normal", "binomial", "_standard_gamma", "_sample_dirichlet"}
# The output's values are values of the input, or between them.
_KEEPS = {"max", "min", "amax", "amin", "mean", "median", "clone", "_to_copy", "index", "index_select", "gather", "cat", "stack", "topk",
          "sort", "masked_select", "copy", "contiguous", "repeat", "roll", "flip"}


@contextlib.contextmanager
def seeded():
    """The random numbers of Python, NumPy and PyTorch's CPU are the same in each capture, and as they were afterwards."""
    before = random_state.now()
    random_state.seed()
    try:
        yield
    finally:
        random_state.put(before)


def base_name(func) -> str:
    """"aten::add_.Tensor" -> "add"."""
    return _base(func.name())


@functools.cache
def _base(name: str) -> str:
    return name.partition("::")[2].partition(".")[0].rstrip("_")


class Values:
    """Real values and guesses, by storage; both are forgotten when something unknown is written into it."""

    def __init__(self):
        self._real: dict[int, torch.Tensor] = {}  # address of a fake storage -> all of its bytes
        self._guess: dict[int, object] = {}
        self._initial: set[int] = set()  # of real ones: those that follow from what the model holds before its first step
        self._random: set[int] = set()  # of real ones: those that random numbers decide, which another step draws anew
        self._alive: dict[int, weakref.ref] = {}

    def real(self, tensor) -> torch.Tensor | None:
        """The tensor with its values, where they are known."""
        if not isinstance(tensor, fake_tensor.FakeTensor):
            return tensor if tensor.device.type == "cpu" else None
        storage = self._real.get(tensor.untyped_storage()._cdata)
        if storage is None:
            return None
        with fake_tensor.unset_fake_temporarily():
            return torch.empty(0, dtype=tensor.dtype).set_(storage.untyped_storage(), tensor.storage_offset(), tuple(tensor.shape),
                                                           tuple(tensor.stride()))

    def guess(self, tensor):
        """A plausible value of an element, or None."""
        return self._guess.get(tensor.untyped_storage()._cdata) if isinstance(tensor, fake_tensor.FakeTensor) else None

    def set_real(self, tensor, value: torch.Tensor) -> None:
        """`value` has the shape of the fake `tensor`, which lies in a storage of its own."""
        with fake_tensor.unset_fake_temporarily():
            whole = torch.empty(max(tensor.untyped_storage().nbytes() // tensor.element_size(), 1), dtype=tensor.dtype)
            whole.as_strided(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()).copy_(value)
        self._remember(tensor, self._real, whole)

    def set_initial(self, tensor, value: torch.Tensor) -> None:
        """`value` is what the model holds before its first step; later ones may find another."""
        self.set_real(tensor, value)
        self._initial.add(tensor.untyped_storage()._cdata)

    def is_initial(self, tensor) -> bool:
        return isinstance(tensor, fake_tensor.FakeTensor) and tensor.untyped_storage()._cdata in self._initial

    def is_random(self, tensor) -> bool:
        return isinstance(tensor, fake_tensor.FakeTensor) and tensor.untyped_storage()._cdata in self._random

    def _remember(self, tensor, table: dict, value) -> None:
        storage = tensor.untyped_storage()
        address = storage._cdata
        if address not in self._alive:
            self._alive[address] = weakref.ref(storage, lambda _, address=address: self._forget(address))
        table[address] = value

    def forget(self, tensor) -> None:
        """Its values are unknown from here on."""
        self._forget(tensor.untyped_storage()._cdata)

    def _forget(self, address: int) -> None:
        for table in (self._alive, self._real, self._guess):
            table.pop(address, None)
        self._initial.discard(address)
        self._random.discard(address)

    # -- operators -----------------------------------------------------------------------------------------------

    def follow(self, func, args, kwargs, out) -> None:
        """Called after each operator, with fake tensors."""
        outs = [t for t in operators.tensors(out) if isinstance(t, fake_tensor.FakeTensor)]
        ins = operators.tensors((args, kwargs))
        if not outs:
            return
        mutable = func._schema.is_mutable
        if not mutable and any(t.untyped_storage()._cdata in self._alive for t in outs):
            return  # a view of what is known
        if sum(t.numel() for t in outs) <= MOST_ELEMENTS and self._compute(func, args, kwargs, ins, outs, mutable):
            return
        if mutable:
            for tensor in self._written(func, args, kwargs):
                self.forget(tensor)
        self._guess_outputs(func, args, kwargs, ins, outs)

    @staticmethod
    def _written(func, args, kwargs):
        for position, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[position] if position < len(args) else kwargs.get(argument.name)
                yield from operators.tensors(value)

    def _compute(self, func, args, kwargs, ins, outs, mutable) -> bool:
        """Runs the operator on real values, if all are known."""
        known = {id(t): self.real(t) for t in ins}
        if any(value is None for value in known.values()) or not all(t.layout is torch.strided for t in outs):
            return False

        def real(value):
            if isinstance(value, torch.Tensor):
                return known[id(value)]
            if isinstance(value, (list, tuple)):
                return type(value)(real(v) for v in value) if type(value) in (list, tuple) else value
            return value

        on_host = {name: torch.device("cpu") if name == "device" else False if name == "pin_memory" else real(value)
                   for name, value in kwargs.items()}
        try:
            with fake_tensor.unset_fake_temporarily(), torch.no_grad():
                found = func(*real(args), **on_host)
                if base_name(func) in ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"):
                    found.zero_()
        except Exception:  # whatever the reason, the values are unknown then
            return False
        if not mutable:
            for tensor, value in zip(outs, operators.tensors(found)):
                if tuple(value.shape) != tuple(tensor.shape):
                    return False
                self.set_real(tensor, value)
        if any(map(self.is_initial, ins)):
            self._initial.update(tensor.untyped_storage()._cdata for tensor in outs)
        if base_name(func) in _RANDOM or any(map(self.is_random, ins)):
            self._random.update(tensor.untyped_storage()._cdata for tensor in outs)
        return True

    def set_guess(self, tensor, guess) -> None:
        self._remember(tensor, self._guess, guess)

    def _guess_outputs(self, func, args, kwargs, ins, outs) -> None:
        name = base_name(func)
        first = self._first_guess(func, name, args, kwargs, ins, outs[0])
        if first is not None:
            self._remember(outs[0], self._guess, first)
        if name in _SECOND_IS_INDEX and len(outs) > 1:
            self._remember(outs[1], self._guess, 0)

    def _first_guess(self, func, name, args, kwargs, ins, out):
        if name == "uniform":
            low, high = (list(args[1:3]) + [0.0, 1.0][len(args) - 1:])[:2]
            return (low + high) / 2
        if name in ("random", "randint", "randint_like"):
            numbers = [a for a in args if isinstance(a, int) and not isinstance(a, bool)]
            return numbers[0] if len(numbers) > 1 else 0
        if name in _IN_RANGE:
            return _IN_RANGE[name]
        if name in ("count_nonzero", "sum") and ins and (name != "sum" or ins[0].dtype is torch.bool):
            return ins[0].numel() // max(out.numel(), 1)
        if name in _KEEPS and ins:
            return self._guess_of(ins[0])
        if torch.Tag.pointwise in func.tags:
            return self._pointwise(func, args, kwargs, ins)
        return None

    def _guess_of(self, tensor):
        found = self.guess(tensor)
        if found is None and tensor.numel() <= MOST_ELEMENTS:
            real = self.real(tensor)
            if real is not None and real.numel():
                found = self.on_host(lambda: real.flatten()[0].item())
        return found

    def _pointwise(self, func, args, kwargs, ins):
        """The operator on one element of each operand."""
        guesses = {id(t): self._guess_of(t) for t in ins}
        floating = [t for t in ins if guesses[id(t)] is None]
        if base_name(func) in ("clamp", "clip") and len(floating) == len(ins) == 1:
            guesses[id(ins[0])] = 1.0
        elif not ins or floating:
            return None

        def one(value):
            return torch.tensor(guesses[id(value)], dtype=value.dtype) if isinstance(value, torch.Tensor) else value

        try:
            with fake_tensor.unset_fake_temporarily(), torch.no_grad():
                return func(*map(one, args), **{n: one(v) for n, v in kwargs.items() if n != "device"}).item()
        except Exception:  # an operator that one element says nothing about
            return None

    # -- reading -------------------------------------------------------------------------------------------------

    def read(self, tensor) -> tuple:
        """(value or None, whether it is what the model would read)."""
        real = self.real(tensor)
        if real is not None:
            return self.on_host(real.item), True
        return self.guess(tensor), False

    @staticmethod
    def on_host(function, *args):
        """Calls it with real tensors: nothing of it is fake or recorded."""
        with fake_tensor.unset_fake_temporarily(), torch.no_grad():
            return function(*args)
