"""Products of matrices that an optimizer of the script's own computes in its step (Muon, Shampoo), which no recipe of an optimizer
holds: each becomes an operator at the end of the step's backward."""

from __future__ import annotations

import torch

from ...tracing.recorder import DTYPES

PRODUCTS = {torch.ops.aten.mm.default: 0, torch.ops.aten.bmm.default: 0, torch.ops.aten.addmm.default: 1,
             torch.ops.aten.baddbmm.default: 1}  # operator -> position of the first factor
_DECOMPOSES = ("aten::linalg_", "aten::_linalg_")


class Products:
    """What the last step of each optimizer has multiplied."""

    def __init__(self):
        self._rows: dict[int, list] = {}  # id of an optimizer -> (type, elements of the result, FLOPs, bytes)
        self._optimizer = 0
        self.decomposed: set = set()  # names of operators that are not counted

    def begin(self, optimizer) -> None:
        self._optimizer = id(optimizer)
        self._rows.pop(self._optimizer, None)

    def saw(self, func, args, out) -> None:
        first = PRODUCTS.get(func)
        if first is None:
            if func.name().startswith(_DECOMPOSES):
                self.decomposed.add(func.name())
            return
        a, b = args[first], args[first + 1]
        moved = sum(t.numel() for t in (a, b, out)) * out.element_size()
        row = (DTYPES.get(out.dtype, "f32"), out.numel(), 2 * out.numel() * a.shape[-1], moved, out.element_size())
        self._rows.setdefault(self._optimizer, []).append(row)

    def append_to(self, raw, parts: int) -> int:
        """Adds them to a step, of which as many parts are accumulated; how many there are."""
        rows = [row for rows in self._rows.values() for row in rows]
        events = []
        for dtype, elements, flops, moved, size in rows:
            number = len(raw.storages)
            raw.storages.append([elements * size, "transient"])
            made = (dtype, (elements,), None, number)
            work = (("f64", (flops // parts,), None, number), ("u8", (moved // parts,), None, number))
            events += [("a", number), ("o", "stoker::product_kernel_", 0, -1, True, work, (made,), {}), ("f", number)]
        at = max(i for i, event in enumerate(raw.events) if event == ("p", "end"))
        raw.events[at:at] = events
        return len(rows)
