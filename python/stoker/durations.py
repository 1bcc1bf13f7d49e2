"""Times on the command line."""

from __future__ import annotations

import re

from .errors import CaptureError

_UNITS = {"ms": 1e-3, "s": 1, None: 1, "m": 60, "min": 60, "h": 3600}


def seconds(text: str, flag: str) -> float:
    """"90s", "9m", "90" -> seconds."""
    match = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|min|m|h)?", text)
    if not match:
        raise CaptureError(f"{flag} {text}: write a time such as 90s or 9m")
    return float(match[1]) * _UNITS[match[2]]
