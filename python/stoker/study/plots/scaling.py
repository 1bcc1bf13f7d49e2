"""Throughput over threads, workers, GPUs or the batch: what was measured, the law fitted to it, and what limits next."""

from __future__ import annotations

from . import style

MOST_PANELS = 6


def limit_words(s: dict) -> tuple:
    """The number at which something else limits, its throughput and what to say of it; (None, limit, words) without a knee."""
    axis = style.plain(s["axis"], 24)
    if s["explained_by"] == "batch":
        law = s["batch"]
        return law["half"], 1 / law["each_s"], f"half of the limit at {axis} {law['half']:.3g}"
    if s["explained_by"] == "ceiling":
        knee = s["ceiling"]["knee"]
        return knee, s["ceiling"]["limit"], f"from {axis} {knee:.3g} on something else limits;\ntwice that limit would need {2 * knee:.3g}"
    law = s["law"]
    words = f"{100 * law['contention']:.2g} % one after the other"
    if law["peak"] is not None:
        return law["peak"], law["limit"], f"{words};\nmore than {axis} {law['peak']:.3g} makes it slower"
    return None, law["limit"], words


def draw(figure_class, study: dict):
    found = study["findings"]["scaling"][:MOST_PANELS]
    if not found:
        return None
    columns = min(len(found), 2)
    rows = (len(found) + columns - 1) // columns
    figure = figure_class(figsize=(5.6 * columns, 4.2 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for panel, one in zip(panels, found):
        draw_panel(panel, one)
    for panel in panels[len(found) :]:
        panel.set_axis_off()
    figure.suptitle("Scaling of samples/s, and the next bottleneck", fontsize=12)
    return figure


def draw_panel(panel, s: dict) -> None:
    style.tidy(panel)
    largest = max(n for n, _ in s["points"])
    for dashed in (False, True):  # beyond the largest number tried a law is an extrapolation
        line = [(n, x) for n, x in s["line"] if (n >= largest if dashed else n <= largest)]
        if line:
            panel.plot(*zip(*line), color=style.COLOURS[0], linewidth=1.5, linestyle="--" if dashed else "-",
                       label="beyond what was tried" if dashed else f"fit within {100 * s['error']:.2g} %")
    panel.plot(*zip(*s["points"]), "o", color=style.COLOURS[1], label="measured")
    at, limit, words = limit_words(s)
    top = max([x for _, x in s["points"]] + [x for _, x in s["line"]])
    if limit is not None and limit < 3 * top:
        panel.axhline(limit, color=style.GREY, linewidth=1, linestyle=":")
        panel.annotate("limit", (1, limit), xycoords=("axes fraction", "data"), fontsize=7, color="#666666", ha="right", va="bottom")
    if at is not None and at <= s["line"][-1][0]:
        panel.axvline(at, color=style.COLOURS[2], linewidth=1, linestyle=":")
    numbers = [n for n, _ in s["points"]]
    if largest > 30 * min(numbers):
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter("{x:g}")
    panel.set_ylim(bottom=0)
    panel.set_xlabel(style.plain(s["axis"], 24))
    panel.set_ylabel("samples/s")
    panel.set_title(style.setting_text(s["others"]), fontsize=8, color="#444444")
    legend = panel.legend(fontsize=8, frameon=False, loc="lower right", title=words, title_fontsize=8, alignment="right")
    legend.get_title().set_color(style.COLOURS[2])
    legend.get_title().set_multialignment("right")
