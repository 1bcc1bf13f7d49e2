"""What each axis does to a metric: mean changes with their 95 % intervals, axis by axis."""

from __future__ import annotations

from . import style

MOST_ROWS = 60
BEYOND = 8  # an interval that goes farther than this beyond all means is cut, with an arrow


def rows_of(effects: list, ratio: bool) -> list:
    """Headings of axes and below each its values: ("text", None) or ("text", level)."""
    rows: list = []
    for effect in effects:
        if (effect["change_is"] == "ratio") != ratio:
            continue
        rows.append((f"{style.plain(effect['axis'], 24)}, beside {style.plain(effect['from'], 24)}", None))
        rows += [(style.plain(level["value"], 32), level) for level in effect["levels"]]
    return rows


def limits_of(levels: list, ratio: bool) -> tuple:
    """Ends of the axis: all means, and intervals as far as they are of use."""
    means = [level["change"] for level in levels]
    lows = [level["low"] for level in levels if level["low"] is not None]
    highs = [level["high"] for level in levels if level["high"] is not None]
    if ratio:
        low, high = min(1.0, *means), max(1.0, *means)
        return max(min([low, *lows]), low / BEYOND) * 0.92, min(max([high, *highs]), high * BEYOND) * 1.08
    low, high = min(0.0, *means), max(0.0, *means)
    room = BEYOND * ((high - low) or 1.0)
    low, high = max(min([low, *lows]), low - room), min(max([high, *highs]), high + room)
    edge = 0.05 * ((high - low) or 1.0)
    return low - edge, high + edge


def colour_of(level: dict, none: float, more) -> str:
    if level["low"] is None or level["low"] <= none <= level["high"]:
        return style.GREY
    if more is None:
        return style.COLOURS[0]
    return style.COLOURS[2] if (level["change"] > none) == more else style.COLOURS[1]


def draw_levels(panel, rows: list, ratio: bool, more) -> None:
    none = 1.0 if ratio else 0.0
    low, high = limits_of([level for _, level in rows if level], ratio)
    for place, (_, level) in enumerate(rows):
        if not level:
            continue
        colour = colour_of(level, none, more)
        known = level["low"] is not None
        if known:
            panel.plot([max(level["low"], low), min(level["high"], high)], [place, place], color=colour, linewidth=2.5, alpha=0.6)
            if level["low"] < low:
                panel.plot([low], [place], marker="<", color=colour, clip_on=False)
            if level["high"] > high:
                panel.plot([high], [place], marker=">", color=colour, clip_on=False)
        panel.plot([level["change"]], [place], marker="o", markersize=6, color=colour, markerfacecolor=colour if known else "white")
    panel.axvline(none, color="#444444", linewidth=1, linestyle="--")
    if ratio and high > 4 * low:
        panel.set_xscale("log")
    panel.set_xlim(low, high)


def draw(figure_class, one: dict, more):
    """A picture of one metric's effects; None where there are none. `more`: whether more of it is better, None: not known."""
    kinds = [(ratio, rows) for ratio in (True, False) if (rows := rows_of(one["effects"], ratio))]
    if not kinds:
        return None
    counts = [min(len(rows), MOST_ROWS) for _, rows in kinds]
    figure = figure_class(figsize=(8, 1.6 * len(kinds) + 0.27 * sum(counts)), layout="constrained")
    panels = figure.subplots(len(kinds), 1, squeeze=False, height_ratios=counts)[:, 0]
    for panel, (ratio, rows) in zip(panels, kinds):
        left_out = len(rows) - MOST_ROWS
        rows = rows[:MOST_ROWS]
        style.tidy(panel)
        draw_levels(panel, rows, ratio, more)
        panel.set_yticks(range(len(rows)), [text for text, _ in rows], fontsize=8)
        for label, (_, level) in zip(panel.get_yticklabels(), rows):
            label.set_fontweight("normal" if level else "bold")
        panel.set_ylim(len(rows) - 0.4, -0.6)
        words = "times the metric (1: no change)" if ratio else "added to the metric (0: no change)"
        panel.set_xlabel(words + (f"; {left_out} more rows are in study.json" if left_out > 0 else ""), fontsize=9)
    goal = "" if more is None else " Green: better, orange: worse, grey: no effect shown."
    figure.suptitle(f"What each axis does to {style.plain(one['metric'])}", fontsize=12)
    figure.supxlabel(f"Means over trials that differ in nothing else, 95 % intervals; hollow: one pair.{goal}", fontsize=8, color="#444444")
    return figure
