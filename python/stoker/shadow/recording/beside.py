"""What lies in the memory of a step and follows no batch: data sets on the device, the script's own data on the host, workspaces."""

from __future__ import annotations

_PADDED = ("aten::mkldnn_rnn_layer", 3)  # an operator and which of its results is a workspace


def hold(raws: list, counts: list, name: str = "the script's own data") -> None:
    """A buffer that no operator touches stands for what lies in the memory of the step: on a CPU the script's data, on a GPU what it
    keeps there. `counts` are its bytes in each of `raws`."""
    for number, (raw, count) in enumerate(zip(raws, counts)):
        if any(raw is other for other in raws[:number]):
            continue
        raw.storages.append([count, "buffer"])
        raw.buffers.append((name, ("u8", (count,), None, len(raw.storages) - 1)))


def on_a_line(values: list, sizes: list) -> list:
    """The values as they are where they follow a straight line in `sizes`, else the largest of them for each."""
    steps = [(b - a, n - m) for a, b, m, n in zip(values, values[1:], sizes, sizes[1:])]
    straight = all(rise * steps[0][1] == steps[0][0] * run for rise, run in steps) and all(
        rise % run == 0 if run else not rise for rise, run in steps)
    return list(values) if straight else [max(values)] * len(values)


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


def read_by_both(record, records: list) -> list:
    """Storages that serve another step too: weights of a teacher and data on the device are no batch of a loader."""
    others = [other for other in records if other is not record]
    if not others:
        return []
    there = others[-1].recorder
    used = {t[3] for event in there.events if event[0] == "o" for t in event[5]}
    return [number for number, address in record.recorder._addresses.items() if there._ids.get(address) in used]
