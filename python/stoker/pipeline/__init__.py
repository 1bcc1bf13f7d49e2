"""The probe of a user's own Dataset or DataLoader."""

from .probing import DEFAULT_BUDGET_S, SHORTEST_BUDGET_S, probe_pipeline

__all__ = ["DEFAULT_BUDGET_S", "SHORTEST_BUDGET_S", "probe_pipeline"]
