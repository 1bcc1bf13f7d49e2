"""Real training steps of models on this machine, measured for comparison with forecasts (docs/guide/validating.md).

A *run* is one model at one batch, number of threads and precision; a *repetition* is one process that trains it for some
steps. The result is a rows file. `stoker validate MODEL` calls this and sets forecasts beside it.
"""

from __future__ import annotations

from ..errors import CaptureError


def run(arguments: list) -> int:
    """python -m stoker training-runs ARGUMENTS."""
    import time

    from . import runner

    begun = time.monotonic()
    options = runner.parser().parse_args(arguments)
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise CaptureError(f"training steps need PyTorch, which this Python cannot import ({error}): `pip install torch`, "
                           "or name the interpreter that has it in STOKER_PYTHON") from None
    return runner.main(options, begun)
