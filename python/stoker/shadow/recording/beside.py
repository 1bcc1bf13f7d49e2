"""What lies in the memory of a step and is none of it: data sets on the device, the script's own data on the host."""

from __future__ import annotations


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
