"""Memory for operands: cut out of one block of numbers, so that making an operator costs nothing and none touches new pages."""

from __future__ import annotations

import ctypes
import math

import torch

_ALIGNMENT = 64  # bytes, as PyTorch's allocator on the CPU aligns
_PATTERN = 1 << 20
# mallopt's parameters (malloc.h) and values.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_NEVER_TRIM, _PAD = -1, 64 << 20


def keep_memory() -> bool:
    """Tells glibc to keep what is freed, so that results lie in pages that exist: page faults are a figure of their own
    (fault_us), and in a training step their number depends on the order of all its allocations. False: another libc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, _NEVER_TRIM)) and bool(mallopt(_M_TOP_PAD, _PAD))


class Pool:
    """`byte_count` bytes of numbers between 0.1 and 1. Operators that write in place are given factors that change them
    by less than a millionth, so that no number ever becomes a denormal or overflows."""

    def __init__(self, byte_count: int):
        self.bytes = byte_count
        self._of = {torch.float32: self._filled(torch.float32, byte_count)}

    @staticmethod
    def _filled(dtype, byte_count: int) -> torch.Tensor:
        pattern = (torch.rand(_PATTERN, generator=torch.Generator().manual_seed(1)) * 0.9 + 0.1).to(dtype)
        values = torch.empty(byte_count // pattern.element_size(), dtype=dtype)
        for start in range(0, values.numel(), _PATTERN):
            part = values[start:start + _PATTERN]
            part.copy_(pattern[:part.numel()])
        return values

    def values(self, dtype) -> torch.Tensor:
        if dtype not in self._of:
            self._of[dtype] = self._filled(dtype, self.bytes // 4)  # few operators, none of them large
        return self._of[dtype]


class Cut:
    """Hands out consecutive operands, from `offset` elements on, going round at the pool's end. `used` elements so far."""

    def __init__(self, pool: Pool, dtype, offset: int = 0):
        self.dtype, self._values = dtype, pool.values(dtype)
        self._align = max(1, _ALIGNMENT // self._values.element_size())
        self._at, self.used = offset % self._values.numel(), 0

    def __call__(self, *shape) -> torch.Tensor:
        count = math.prod(shape)
        taken = -(-count // self._align) * self._align
        if count > self._values.numel():
            raise MemoryError(f"an operand of {count} elements is larger than the pool")
        if self._at + count > self._values.numel():
            self._at = 0
        start, self._at = self._at, self._at + taken
        self.used += taken
        return self._values[start:start + count].view(*shape)

    def own(self, *shape, dtype=None, value=None) -> torch.Tensor:
        """Memory outside of the pool, touched: for operators that overwrite it, and for numbers that have to be right."""
        made = torch.empty(shape, dtype=dtype or self.dtype)
        return made.fill_(1 if value is None else value)
