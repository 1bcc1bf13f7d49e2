"""How settings come to a target of a metric, over time: epochs alone would favour settings whose epochs are long."""

from __future__ import annotations

from . import style

MOST_NAMED = len(style.COLOURS)


def draw(figure_class, study: dict, one: dict):
    """A line for each trial that reported on its way, coloured by setting; the slower ones beyond seven stay grey."""
    trials = {trial["trial"]: trial for trial in study["trials"]}
    order = [tuple(map(str, a["values"].values())) for a in one["settings"]]
    figure = figure_class(figsize=(8.5, 5.2), layout="constrained")
    panel = figure.subplots()
    style.tidy(panel)
    named: set = set()
    values: list = []
    for curve in sorted(one["curves"], key=lambda c: -place_of(order, trials[c["trial"]])):
        setting = trials[curve["trial"]]["values"]
        place = place_of(order, trials[curve["trial"]])
        colour = style.COLOURS[place] if place < MOST_NAMED else style.LIGHT
        label = setting_label(setting, one["settings"], place) if place < MOST_NAMED and place not in named else None
        named.add(place)
        panel.plot(*zip(*curve["points"]), color=colour, linewidth=1.4, marker=".", markersize=4, label=label,
                   zorder=2 if place < MOST_NAMED else 1)
        values += [value for _, value in curve["points"]]
    panel.axhline(one["target"], color="#444444", linewidth=1, linestyle="--")
    panel.annotate(f"target {one['target']:.4g}", (0.005, one["target"]), xycoords=("axes fraction", "data"), fontsize=8, va="bottom")
    for time in one["times"]:
        panel.axvline(time, color=style.GREY, linewidth=0.8, linestyle=":")
    if style.wide(values):
        panel.set_yscale("log")
    panel.set_xlabel("time since the trial began (s); dotted: the equal times of the table")
    panel.set_ylabel(style.unit_of(one["metric"])[1])
    more = len(order) - MOST_NAMED
    figure.suptitle(f"Convergence of {style.plain(one['metric'])}" + (f" (grey: {more} more settings)" if more > 0 else ""), fontsize=12)
    handles, labels = panel.get_legend_handles_labels()
    panel.legend(handles[::-1], labels[::-1], fontsize=8, frameon=False, loc="best")
    return figure


def place_of(order: list, trial: dict) -> int:
    return order.index(tuple(map(str, trial["values"].values())))


def setting_label(values: dict, settings: list, place: int) -> str:
    seconds = settings[place]["seconds"]
    return style.setting_text(values) + (f": target after {seconds:.3g} s" if seconds is not None else ": target not reached")
