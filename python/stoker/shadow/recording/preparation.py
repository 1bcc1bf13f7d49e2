"""What a script computes on the device before a step's forward, and whether the step needs it."""

from __future__ import annotations

from .updates import PRODUCTS

_STACKS = {"aten::stack", "aten::cat"}
_LAYERS = {func.name() for func in PRODUCTS} | {"aten::embedding"}


def without_preparation(events: list, kinds: list, inputs) -> tuple:
    """(events, those of them that come before the forward): without what serves nothing in the step, such as metrics of the
    step before and moving averages."""
    first = next((i for i, e in enumerate(events) if e == ("p", "forward")), None)
    if first is None:
        return events, []
    before, after = events[:first], events[first:]
    wanted = {t[3] for e in after if e[0] == "o" for t in (*e[5], *e[6])} | set(inputs)
    kept: list = []
    for event in reversed(before):
        if event[0] == "o":
            made = {t[3] for t in event[6]}
            lasting = any(kinds[s] in ("parameter", "buffer") for s in made)
            if lasting or not made & wanted:
                continue
            wanted |= {t[3] for t in event[5]}
        kept.append(event)
    used = {t[3] for e in kept if e[0] == "o" for t in (*e[5], *e[6])} | wanted
    kept = [_without_views(e) for e in reversed(kept) if not (e[0] in "af" and e[1] not in used) and e[0] != "s"]
    return kept + after, kept


def operators(events: list) -> int:
    """How many there are."""
    return sum(event[0] == "o" for event in events)


def layers(events: list) -> int:
    """How many operators there are of which each model that is called has one."""
    return sum(event[0] == "o" and (event[1] in _LAYERS or "convolution" in event[1]) for event in events)


def _without_views(event):
    """Views that the host took before are the loader's, one for each sample of a batch, which are stacked where the data is there."""
    if event[0] == "o" and event[1] in _STACKS and len(event[5]) > 1 and len({(t[1], t[3]) for t in event[5]}) == 1:
        event = (*event[:5], ((*event[6][0][:3], event[5][0][3]),), *event[6:])
    if event[0] != "o" or "v" not in event[7]:
        return event
    return (*event[:7], {key: value for key, value in event[7].items() if key != "v"})
