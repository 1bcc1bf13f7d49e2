"""Real PyTorch DataLoaders on this machine, measured for comparison with forecasts (docs/guide/validating-input.md).

A *scenario* is a data set with its collate; a *point* is one setting of the DataLoader and of the loop that uses it;
a *repetition* is one timed epoch of a point in a process of its own. The result is a rows file.
"""

from __future__ import annotations

from ..errors import CaptureError


def run(arguments: list) -> int:
    """python -m stoker loader-runs ARGUMENTS."""
    try:
        import numpy  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise CaptureError(f"timing DataLoaders needs PyTorch and numpy ({error}): install them, or name their "
                           "interpreter in STOKER_PYTHON") from None
    from . import runner

    return runner.main(arguments)
