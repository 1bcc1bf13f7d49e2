"""The probe of a user's own Dataset or DataLoader. Importing this imports no PyTorch; probe_pipeline does."""

from .budget import DEFAULT_BUDGET_S, SHORTEST_BUDGET_S, need_pytorch

__all__ = ["DEFAULT_BUDGET_S", "SHORTEST_BUDGET_S", "need_pytorch", "probe_pipeline"]


def __getattr__(name: str):
    if name != "probe_pipeline":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    need_pytorch()
    from .probing import probe_pipeline

    return probe_pipeline
