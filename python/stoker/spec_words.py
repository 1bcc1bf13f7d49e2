"""Whether a text can name a model, found out before PyTorch is imported, which takes seconds."""

from __future__ import annotations

import pathlib

from .errors import CaptureError


def check(spec: str) -> None:
    """Raises CaptureError with the cure."""
    kind, separator, rest = spec.rpartition(":")
    if spec.startswith("hf:") or kind in ("torchvision", "timm"):
        return
    if spec.endswith(".py") or (separator and not rest and kind.endswith(".py")):
        raise CaptureError(f"'{spec}' names no function: write FILE.py:FUNCTION")
    if not kind.endswith(".py"):
        raise CaptureError(f"'{spec}' is no model: write torchvision:NAME, timm:NAME, hf:ORG/NAME or FILE.py:FUNCTION")
    check_file(kind, spec)


def check_file(path: str, spec: str) -> None:
    if not pathlib.Path(path).is_file():
        raise CaptureError(f"there is no file {path}: check the path before the colon of '{spec}'")
