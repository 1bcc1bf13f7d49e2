"""The probe of a user's own Dataset or DataLoader. Importing this imports no PyTorch; probe_pipeline does."""

from ..errors import ProbeError

DEFAULT_BUDGET_S = 20.0
SHORTEST_BUDGET_S = 1.0

__all__ = ["DEFAULT_BUDGET_S", "SHORTEST_BUDGET_S", "need_pytorch", "probe_pipeline"]


def need_pytorch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ProbeError(f"a probe of a Dataset or DataLoader needs PyTorch, which cannot be imported ({error}): install "
                         "it, or name its interpreter in STOKER_PYTHON") from None


def __getattr__(name: str):
    if name != "probe_pipeline":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    need_pytorch()
    from .probing import probe_pipeline

    return probe_pipeline
