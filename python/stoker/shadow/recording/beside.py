"""What lies in the memory of a step and follows no batch: data sets on the device, the script's own data on the host, workspaces."""

from __future__ import annotations

_PADDED = ("aten::mkldnn_rnn_layer", 3)  # an operator and which of its results is a workspace


def hold(raws: list, count: int) -> None:
    """On a CPU the script's data lie in the same memory as its step: a buffer that no operator touches stands for them."""
    for number, raw in enumerate(raws):
        if any(raw is other for other in raws[:number]):
            continue
        raw.storages.append([count, "buffer"])
        raw.buffers.append(("the script's own data", ("u8", (count,), None, len(raw.storages) - 1)))


def hold_data_sets(raws: list, sizes: list) -> bool:
    """Storages that come from outside of the step and whose bytes are no straight line in the batch become constants."""
    if len({len(raw.storages) for raw in raws}) > 1:
        return False
    low, high, check = sizes
    found = False
    for rows in zip(*(raw.storages for raw in raws)):
        a, b, c = (row[0] for row in rows)
        if rows[0][1] in ("input", "buffer") and (b - a) * (check - low) != (c - a) * (high - low):
            found = True
            for row in rows:
                row[0] = max(a, b, c)
    return found


def straighten_workspaces(raws: list, sizes: list) -> None:
    """oneDNN pads a recurrent layer's workspace by rules of its own: at each batch it is taken for as many bytes a sample as where that
    is most."""
    operator, place = _PADDED
    found = [[e[6][place][3] for e in raw.events if e[0] == "o" and e[1] == operator and len(e[6]) > place] for raw in raws]
    if len({len(row) for row in found}) > 1:
        return
    for storages in zip(*found):
        each = max(-(-raw.storages[s][0] // size) for raw, s, size in zip(raws, storages, sizes))
        for raw, s, size in zip(raws, storages, sizes):
            raw.storages[s][0] = each * size
            raw.events = [_with_bytes(event, s, each * size) for event in raw.events]


def _with_bytes(event: tuple, storage: int, count: int) -> tuple:
    """The operator with the vector of bytes that this storage holds at another length."""
    if event[0] != "o":
        return event
    inputs, outputs = (tuple((t[0], (count,), *t[2:]) if t[3] == storage else t for t in part) for part in event[5:7])
    return (*event[:5], inputs, outputs, *event[7:])
