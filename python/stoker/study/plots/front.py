"""Time, money and metrics of all settings, and which of them no other beats."""

from __future__ import annotations

from . import style

MOST_NAMED = 6
MOST_PANELS = 4


def draw(figure_class, study: dict, goals: dict):
    """A panel for the first figure (time) beside each other one; None where fewer than two settings have all."""
    findings = study["findings"]
    front, settings = findings["pareto"], findings["settings"]
    if not front or len(settings) < 2:
        return None
    names = list(front[0]["figures"])
    first, others = names[0], names[1 : 1 + MOST_PANELS]
    figure = figure_class(figsize=(max(7, 5.2 * len(others)), 5.2), layout="constrained")
    panels = figure.subplots(1, len(others), squeeze=False)[0]
    best = {tuple(map(str, point["values"].values())) for point in front}
    for panel, other in zip(panels, others):
        style.tidy(panel)
        draw_panel(panel, settings, front, (first, other), best, goals)
        if len(others) == 1:  # of two figures alone the front is a line
            points = sorted((scaled(p, first), scaled(p, other)) for p in front)
            panel.plot(*zip(*points), drawstyle="steps-post", color=style.COLOURS[0], linewidth=1, alpha=0.6, zorder=1)
    figure.suptitle("Settings that no other beats in " + " and ".join(style.plain(n) for n in names) + " at once", fontsize=12)
    return figure


def scaled(setting: dict, name: str) -> float:
    return setting["figures"][name] / style.unit_of(name)[0]


def draw_panel(panel, settings: list, front: list, names: tuple, best: set, goals: dict) -> None:
    beaten = [s for s in settings if tuple(map(str, s["values"].values())) not in best and None not in (s["figures"][n] for n in names)]
    for group, colour, size, words in ((beaten, style.LIGHT, 26, "beaten by another"), (front, style.COLOURS[0], 46, "beaten by none")):
        if group:
            points = ([scaled(s, name) for s in group] for name in names)
            panel.scatter(*points, s=size, color=colour, edgecolor="white", label=words, zorder=2)
    for place, setting in enumerate(front[:MOST_NAMED]):
        up = place % 2 == 0
        panel.annotate(style.setting_text(setting["values"]), tuple(scaled(setting, n) for n in names), fontsize=7, color="#333333",
                       xytext=(6, 7 if up else -7), textcoords="offset points", va="bottom" if up else "top")
    panel.margins(x=0.18, y=0.12)
    for name, label, scale in ((names[0], panel.set_xlabel, panel.set_xscale), (names[1], panel.set_ylabel, panel.set_yscale)):
        goal = {"max": ", more is better", "min": ", less is better"}.get(goals.get(name, ""), "")
        label(style.unit_of(name)[1] + goal)
        if style.wide([scaled(s, name) for s in beaten + front]):
            scale("log")
    panel.legend(fontsize=8, frameon=False)
