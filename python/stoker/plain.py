"""Text that a terminal shows as it is: names and messages from files steer nothing. printable() of src/base/text.h in Python."""

from __future__ import annotations

import re

# Control characters of both ranges, marks that turn the direction of writing, line separators (as `steers` of
# src/base/text.cc), and halves of characters, which no encoding writes.
_STEERS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_LINE, _LINES = re.compile(f"[{_STEERS}\t\n]"), re.compile(f"[{_STEERS}]")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")  # ECMA-48, SGR


def printable(text: object) -> str:
    """One line: what would move a terminal's cursor, colour it or turn its direction is a question mark."""
    return _LINE.sub("?", str(text))


def without_colours(text: object) -> str:
    """What a library wrote for a terminal that shows colours, without them."""
    return _COLOUR.sub("", str(text))


def counted(number: int, what: str) -> str:
    """A number and what it counts: "1 worker", "4 workers", "1,024 batches". counted() of src/base/counted.h in Python."""
    if number == 1:
        return f"1 {what}"
    if what.endswith("y") and what[-2:-1] not in ("a", "e", "o", "u"):
        return f"{number:,} {what[:-1]}ies"
    return f"{number:,} {what}{'es' if what.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def percent(share: float, digits: int = 0) -> str:
    """A share in per cent, as percent() and exact_percent() of src/base/percent.h write it: 0.423 is "42 %"."""
    return f"{share * 100:.{digits}f} %"


def printable_lines(text: object) -> str:
    """Text that a terminal shows as it is, with line breaks and tabulators kept."""
    return _LINES.sub("?", str(text))
