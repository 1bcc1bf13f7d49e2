"""One run on a GPU: the launch, the host and copies, all-reduce where there are several GPUs, then operators, most valuable first."""

from __future__ import annotations

import os
import time

from ..errors import CaptureError
from ..measure import nvidia
from ..measure.contention import Load
from ..plain import counted
from . import rows
from .gpu import all_reduce, cases, facts, watch
from .gpu.worker import IMPORT_LIMIT_S, NoStart, Worker
from .rounds import Progress

CASE_LIMIT_S = 60.0
_LEAST_S = 1.5           # no case begins with less: it would be cut short
_SAVE_EVERY_S = 10.0
_ALL_REDUCE_SHARE = 0.15 # share of the budget, at most
_COPY_BYTES = 64 << 20
# Figures of the machine file out of the host's cases: name -> (what, name).
# A forward operator as a step issues it: module call, dispatch, autograd's node; forecasts scale the host's times by it.
_HOST = {"host_dispatch_us": "module", "forward_us": "autograd_forward", "view_us": "view", "optimizer_us": "optimizer_foreach"}
_COPIES = {"pinned_gbs": "h2d_pinned", "pageable_gbs": "h2d_pageable", "pinned_back_gbs": "d2h_pinned", "pageable_back_gbs": "d2h_pageable"}

_DONE = ("ok", "noisy", "skipped")  # statuses of cases that no later run tries again


class Run:
    """The state of one call; `file` is what will be written."""

    def __init__(self, options, budget, torch, index: int):
        if options.threads:
            raise CaptureError("--threads belongs to --device cpu: on a GPU the host issues operators from one thread; leave it out")
        facts.check(torch, index)
        self.options, self.budget, self.index = options, budget, index
        self.progress = Progress(options.quiet)
        self.which = nvidia.selector(torch, index)
        smi = facts.query(self.which)  # before anything of ours runs there
        self.before = smi
        self.other = facts.others(nvidia.processes(self.which), {os.getpid()})
        about = {**rows.provenance(), "driver": smi.get("driver_version", ""), "cudnn": str(torch.backends.cudnn.version() or ""),
                 "nccl": ".".join(map(str, torch.cuda.nccl.version())) if hasattr(torch.cuda, "nccl") else ""}
        self.file = rows.begun(options.out, facts.describe(torch, index, smi), about)
        self.file.setdefault("cases", {})
        self.file.setdefault("collectives", [])
        self.worker, self.seen = Worker(), None
        self.load = Load(self.file["load"], self.worker.pid)
        self._reduced, self._failure = False, ""
        self._saved = time.monotonic()

    def list(self) -> None:
        print("\n".join(cases.key_of(case) for case in cases.planned()))

    def measure(self) -> None:
        self.file["complete"] = False
        if self.other:
            self.progress(f"{len(self.other)} other processes use this GPU", always=True)
        try:
            self.worker.start(min(IMPORT_LIMIT_S, max(_LEAST_S, self.budget.left())))
        except NoStart as error:
            raise CaptureError(f"the process that measures did not come up: {error}") from None
        self.seen = watch.Watch(True, self.which)  # from now on: an idle GPU's clock says nothing
        self.file["complete"] = self._cases(cases.planned())
        if self._failure and "ok" not in self.file["cases"].values():
            raise CaptureError(f"nothing could be measured on this GPU: {self._failure}")

    def _cases(self, planned: list) -> bool:
        """Whether the budget was enough for all of them."""
        for number, case in enumerate(planned):
            self.budget.check_interrupts()
            if self.file["cases"].get(cases.key_of(case)) in _DONE:
                continue
            if number > len(cases.host()) and not self.file["collectives"] and not self._reduced:
                self._all_reduce()
            left = self.budget.left()
            if left < _LEAST_S:
                return False
            found = self.worker.run({**case, "device": "cuda", "index": self.index}, min(CASE_LIMIT_S, left))
            if not found and left < CASE_LIMIT_S:
                return False  # the budget cut it: it is the next run's first
            self._take(case, found or [{"status": "failed", "note": f"took longer than {CASE_LIMIT_S:.0f} s"}])
            self.progress(f"{number + 1} of {len(planned)} cases, {max(0.0, self.budget.left()):.0f} s left")
            if time.monotonic() - self._saved > _SAVE_EVERY_S:
                self.save()
        return True

    def _context(self, used: int) -> None:
        """`used` on the device with our process there, less what was in use before."""
        before = self.before.get("memory.used", "")
        held = used - (int(float(before)) << 20 if before.replace(".", "", 1).isdigit() else 0)
        if held > 0:
            self.file["device"]["context_bytes"] = held
            self._figure("context_mib", held / 2**20)

    def _all_reduce(self) -> None:
        gpus = self.file["device"]["gpus"]
        limit = min(all_reduce.LIMIT_S, max(15.0, _ALL_REDUCE_SHARE * self.budget.seconds))
        if gpus < 2 or self.budget.left() < limit:
            return
        self._reduced = True
        self.progress(f"all-reduce over {gpus} GPUs", always=True)
        self.file["collectives"] = all_reduce.measure(gpus, limit)
        if self.file["collectives"]:
            rows.put_figure(self.file, {"name": "all_reduce_gbs", "threads": 0, "spread": 0.0,
                                        "value": round(all_reduce.bandwidth_gbs(self.file["collectives"]), 2)})

    def _take(self, case: dict, found: list) -> None:
        """Figures and operators' rows of one case; its status is kept so that a run that goes on leaves it out."""
        self.file["cases"][cases.key_of(case)] = found[0]["status"]
        self._failure = self._failure or (found[0].get("note", "") if found[0]["status"] not in _DONE else "")
        for row in found:
            if row["status"] != "ok":
                continue
            if case["kind"] == "host":
                self._host_figure(case, row)
            elif case == cases.EMPTY_KERNEL:
                self._figure("launch_floor_us", row["time_us"], row.get("spread", 0.0))
                if row.get("idle_us"):
                    self._figure("idle_launch_us", row["idle_us"])
            else:
                kind, sizes = cases.fit_terms(case, row["pass"])
                if kind:
                    rows.put(self.file, operator_row(case, kind, sizes, row))

    def _figure(self, name: str, value: float, spread: float = 0.0) -> None:
        rows.put_figure(self.file, {"name": name, "threads": 0, "value": float(f"{value:.5g}"), "spread": round(spread, 4)})

    def _host_figure(self, case: dict, row: dict) -> None:
        if case["what"] == "context":
            self._context(row["bytes"])
        for name, wanted in _HOST.items():
            if case["what"] == "dispatch" and case["name"] == wanted:
                self._figure(name, row["us"])
        if case["what"] == "synchronize" and case["name"] == "item":
            self._figure("synchronize_us", row["us"])
        for name, wanted in _COPIES.items():
            if case["what"] == "copy" and case["name"] == wanted and case["bytes"] == _COPY_BYTES:
                self._figure(name, row["gb_per_s"])

    # -- the file ------------------------------------------------------------------------------------------------------

    def has_rows(self) -> bool:
        return bool(self.file["operators"] or self.file["cases"])

    def save(self) -> None:
        self.load.lap()
        found = facts.joined(nvidia.processes(self.which), self.other, {self.worker.pid(), os.getpid()})
        self.other = found if len(found) > len(self.other) else self.other
        summary = self.seen.summary() if self.seen is not None else {}
        why, changed = facts.objections(self.before.get("utilization.gpu", ""), self.other, summary, self.file["device"]["mig"])
        before = self.file["load"]
        if before.get("why"):  # an earlier run's rows stay disturbed
            why = list(dict.fromkeys([*before["why"].split("; "), *why]))
        self.file["load"] = {**self.load.shares(), "others_on_gpu": max(before.get("others_on_gpu", 0), len(self.other)),
                             "clocks_changed": changed or before.get("clocks_changed", False), "watched": summary,
                             "disturbed": bool(why), "why": "; ".join(why)}
        self.file["provenance"]["seconds"] = f"{self.budget.spent():.1f}"
        rows.write(self.file, self.options.out)
        self._saved = time.monotonic()

    def summary(self) -> str:
        left = sum(cases.key_of(case) not in self.file["cases"] for case in cases.planned())
        text = (f"{counted(len(self.file['operators']), 'operator')} and {counted(len(self.file['figures']), 'figure')} "
                f"{rows.place(self.options.out)} ({self.budget.spent():.0f} s)")
        failed = sum(status not in _DONE for status in self.file["cases"].values())
        if failed:
            text += f"; {counted(failed, 'case')} failed"
        if left:
            text += f"; {counted(left, 'case')} {'is' if left == 1 else 'are'} left: {rows.going_on(self.options.out)}"
        return text + (f"; disturbed: {self.file['load']['why']}" if self.file["load"]["disturbed"] else "")

    def close(self) -> None:
        self.worker.close()
        if self.seen is not None:
            self.seen.close()


def operator_row(case: dict, kind: str, sizes: dict, row: dict) -> dict:
    return {"kind": kind, "function": "", "sizes": {name: int(value) for name, value in sizes.items()}, "precision": case["precision"],
            "pass": row["pass"], "threads": 0, "time_us": float(f"{row['time_us']:.5g}"), "spread": round(row.get("spread") or 0.0, 4),
            "warm": bool(row["warm"]), "repetitions": row.get("calls", 0)}
