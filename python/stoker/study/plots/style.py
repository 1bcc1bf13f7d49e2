"""What all pictures share: colours that colour-blind readers tell apart, names as plain text, sizes."""

from __future__ import annotations

# Okabe and Ito, "Color Universal Design", 2008.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#9A9A9A"
LIGHT = "#D8D8D8"
LONGEST = 48
UNITS = (("_bytes", 1e9, " (GB)"), ("_j", 1e3, " (kJ)"))


def plain(text, longest: int = LONGEST) -> str:
    """A name that the user chose, as one line that matplotlib takes for no formula."""
    line = "".join(c if c.isprintable() else " " for c in str(text))
    return (line if len(line) <= longest else line[: longest - 3] + "...").replace("$", r"\$")


def setting_text(values: dict) -> str:
    return plain(" ".join(f"{name}={value}" for name, value in values.items()))


def unit_of(figure: str) -> tuple:
    """What the numbers of a figure are divided by, and how its axis is called."""
    for ending, scale, words in UNITS:
        if figure.endswith(ending):
            return scale, plain(figure[: -len(ending)]) + words
    if figure == "wall_s":
        return 1, "time of a trial (s)"
    if figure == "samples_per_s":
        return 1, "samples/s"
    return 1, plain(figure)


def wide(values) -> bool:
    """Whether positive numbers lie so far apart that a logarithmic axis shows them better."""
    values = [v for v in values if v is not None]
    return bool(values) and min(values) > 0 and max(values) > 30 * min(values)


def file_name(words: str) -> str:
    """A name for a file, whatever characters a metric has."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in words)[:80]


def tidy(panel) -> None:
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    panel.grid(True, color="#EEEEEE", linewidth=0.8)
    panel.set_axisbelow(True)
