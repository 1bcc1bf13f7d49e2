"""Keeps libraries from taking another path because tensors are fake: what is captured is what a real step would do."""

from __future__ import annotations

import contextlib
import sys


@contextlib.contextmanager
def nothing_looks_fake():
    """Inside, transformers takes fake tensors for real ones.

    It asks before it reads a value of a mask; of a fake one it assumes the worst and builds masks that a real step goes
    without, so that attention could not use its fused kernels. The read itself is answered and reported as any other.
    """
    module = sys.modules.get("transformers.utils.import_utils")
    original = getattr(module, "is_fake_tensor", None)
    if original is None:
        yield
        return
    module.is_fake_tensor = lambda tensor: False
    try:
        yield
    finally:
        module.is_fake_tensor = original
