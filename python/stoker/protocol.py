"""What a capture function returns. Imports no torch, so that a model file can import it anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from .errors import CaptureError
from .polynomial import Dimension

BATCH_POINTS = (3, 5, 7, 11)  # sizes that models rarely have inside, and never 1, which many treat apart
BATCH_VERIFIED = 8
BATCH_DEFAULT = 32
SEQUENCE_DEGREE = 2  # attention masks grow with the square of the length


@dataclass
class Capture:
    """A model and what one training step of it needs. Only `module` and `inputs` are required.

    inputs      a tensor, a tuple of positional arguments or a dict of keyword arguments
    loss        a function of (output) or of (output, *targets); default: see docs/guide/own-model.md
    targets     tensors that the loss compares with; they count as inputs of the step
    optimizer   decides parameter groups, and the job's defaults later; never run
    dimensions  further dimensions: Dimension objects, or {"name": default size}
    mode        "train" or "inference"; default: what the caller asks for, else train
    name        what people will call it
    clip        whether gradients are clipped by norm before the optimizer's step (None: unknown)
    ema         whether a moving average of the model is kept beside it
    grad_scaler whether the loss is scaled: True, False or the torch.amp.GradScaler itself
    sample      what a sample is, for reports: {"what": "sentence pair", "tokens": {"seq_len": 1}}
    """

    module: Any
    inputs: Any
    loss: Callable | None = None
    targets: Sequence | None = None
    optimizer: Any = None
    dimensions: Sequence[Dimension] | Mapping[str, int] | None = None
    mode: str | None = None
    name: str | None = None
    sample: Mapping | None = None
    clip: bool | None = None
    ema: bool | None = None
    grad_scaler: Any = None


def from_result(result) -> Capture:
    """A Capture from whatever a capture function returned."""
    if isinstance(result, Capture):
        return result
    if isinstance(result, tuple) and len(result) in (2, 3):
        if len(result) == 3 and result[2] is not None and not callable(result[2]):
            raise CaptureError(f"the third of what the capture function returned is {type(result[2]).__name__} where a "
                               "loss function belongs: give an optimizer as stoker.Capture(module, inputs, optimizer=...)")
        return Capture(*result)
    raise CaptureError(f"the capture function returned {type(result).__name__}: return (module, inputs), "
                       "(module, inputs, loss) or a stoker.Capture")


def declared(dimensions) -> list:
    """Dimension objects from either form of Capture.dimensions."""
    if not dimensions:
        return []
    if isinstance(dimensions, Mapping):
        return [Dimension(name, int(size), degree=SEQUENCE_DEGREE) for name, size in dimensions.items()]
    return list(dimensions)


def with_points(d: Dimension) -> Dimension:
    """The dimension with sizes to capture and to verify at, if it has none yet."""
    from dataclasses import replace

    if d.unit < 1 or d.degree not in (0, 1, 2, 3):
        raise CaptureError(f"dimension {d.name}: unit must be positive and degree 0 to 3")
    if d.captured:
        return d
    low, high = -(-d.min // d.unit), (d.max // d.unit if d.max is not None else None)
    if d.name == "batch":
        captured, verified = BATCH_POINTS[:d.degree + 1], BATCH_VERIFIED
        if d.degree > 1:
            verified = BATCH_POINTS[-1] + 2
        shift = max(0, low - captured[0])
        points = [p + shift for p in (*captured, verified)]
    else:
        points = _spread(max(d.default // d.unit, 1), d.degree + 2, low, high)
    if points[0] < low or (high is not None and max(points) > high):
        raise CaptureError(f"dimension {d.name}: {d.degree + 2} different sizes are needed between min {d.min} and "
                           f"max {d.max} (multiples of {d.unit}): widen them, lower the degree, or use --fixed")
    sizes = tuple(p * d.unit for p in points)
    return replace(d, captured=sizes[:-1], verified=sizes[-1])


def _spread(base: int, count: int, low: int, high: int | None) -> list:
    """`count` different sizes around `base`, the last one beyond it if there is room."""
    step = max(1, base // (2 * (count - 1)))
    if step >= 8:
        step -= step % 8
    first = base - step * (count - 2)
    if high is not None and first + step * (count - 1) > high:
        first = high - step * (count - 1)
    first = max(first, low)
    if high is not None and first + step * (count - 1) > high:
        step = max(1, (high - first) // (count - 1))
    return [first + step * i for i in range(count)]


def fixed(d: Dimension, size: int) -> Dimension:
    """The dimension held at one size: everything is a constant in it."""
    from dataclasses import replace

    return replace(d, default=size, degree=0, min=size, max=size, captured=(size,), verified=size)
