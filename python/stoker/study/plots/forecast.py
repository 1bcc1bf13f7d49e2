"""What was forecast of each trial beside what it measured."""

from __future__ import annotations

from . import style

FIGURES = ("samples_per_s", "wall_s")


def fact_of(trial: dict, name: str):
    return trial["wall_s"] if name == "wall_s" else trial["metrics"].get(name)


def pairs_of(study: dict, name: str, kind: str) -> list:
    """(forecast, low, high, fact) of every trial that is done and has both, all above zero."""
    found = []
    for trial in study["trials"]:
        given, fact = trial.get(kind) or {}, fact_of(trial, name)
        if trial["state"] == "done" and name in given and fact and given[name] > 0:
            found.append((given[name], given.get(name + "_low", given[name]), given.get(name + "_high", given[name]), fact))
    return found


def draw(figure_class, study: dict):
    shown = [name for name in FIGURES if pairs_of(study, name, "forecast")]
    if not shown:
        return None
    figure = figure_class(figsize=(5.6 * len(shown), 5.4), layout="constrained")
    for panel, name in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown):
        style.tidy(panel)
        ends: list = []
        for kind, colour, words in (("forecast", style.GREY, "before it began"),
                                    ("corrected", style.COLOURS[0], "corrected by trials before it")):
            pairs = pairs_of(study, name, kind)
            if not pairs:
                continue
            held = sum(low <= fact <= high for _, low, high, fact in pairs)
            spread = [[max(f - low, 0) for f, low, _, _ in pairs], [max(high - f, 0) for f, _, high, _ in pairs]]
            panel.errorbar([f for f, *_ in pairs], [p[3] for p in pairs], xerr=spread, fmt="o", markersize=4, color=colour, linewidth=0.8,
                           label=f"{words}: {held} of {len(pairs)} within their 90 % bands")
            ends += [p[0] for p in pairs] + [p[3] for p in pairs]
        low, high = min(ends) / 1.4, max(ends) * 1.4
        panel.plot([low, high], [low, high], color="#444444", linewidth=1, linestyle="--")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(low, high)
        label = style.unit_of(name)[1]
        panel.set_xlabel(f"forecast: {label}")
        panel.set_ylabel(f"measured: {label}")
        panel.legend(fontsize=8, frameon=False, loc="upper left")
    figure.suptitle("Forecast and fact; dashed: they are equal", fontsize=12)
    return figure
