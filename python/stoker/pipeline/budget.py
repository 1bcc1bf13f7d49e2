"""How long a probe may take, and what it needs. Importing this imports no PyTorch."""

from __future__ import annotations

from ..errors import ProbeError

DEFAULT_BUDGET_S = 20.0
SHORTEST_BUDGET_S = 1.0


def need_pytorch() -> None:
    """Raises ProbeError with the cure where PyTorch cannot be imported."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ProbeError(f"a probe of a Dataset or DataLoader needs PyTorch, which cannot be imported ({error}): install "
                         "it, or name its interpreter in STOKER_PYTHON") from None
