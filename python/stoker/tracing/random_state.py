"""The random numbers of Python, NumPy and PyTorch's CPU, together. NumPy's where it is imported.

PyTorch's generator is asked itself, since a script may replace what torch has to ask it with.
"""

from __future__ import annotations

import random
import sys

import torch

SEED = 0  # the same random choices in all captures of a step, or their structures would differ


def seed() -> None:
    random.seed(SEED)
    torch.random.default_generator.manual_seed(SEED)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(SEED)


def now() -> tuple:
    numpy = sys.modules.get("numpy")
    return random.getstate(), torch.random.default_generator.get_state(), None if numpy is None else numpy.random.get_state()


def put(state: tuple) -> None:
    random.setstate(state[0])
    torch.random.default_generator.set_state(state[1])
    if state[2] is not None:
        sys.modules["numpy"].random.set_state(state[2])
