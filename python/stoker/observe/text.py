"""A summary for people: the answer first, then where the time goes, then what to do next."""

from __future__ import annotations

from ..plain import counted, percent
from .summary import Summary

WAITS = 0.10  # share of the time above which the loop waits for its data
UNNAMED = 0.20  # share of the time outside all phases that is worth a look

DESCRIPTIONS = {"wait": "waiting for data", "h2d": "copies to the device", "forward": "forward",
                "loss": "loss, up to the gradient", "backward": "backward", "optimizer": "optimizer",
                "other": "outside these", "own": "this recording"}
MEMORY = {"allocated_peak": "allocated at most", "reserved_peak": "reserved", "rss_peak": "resident at most"}
ORDER = ("wait", "h2d", "forward", "loss", "backward", "optimizer")
COMPUTE = ("forward", "loss", "backward", "optimizer")

ENDS = {"exception": "aborted by an exception", "unclosed": "never closed", "skipped": "skipped by the gradient scaler",
        "clock": "with a clock that went back"}
NOTES = {"nested_steps": "steps were opened within another and count as part of it: is an exit forgotten?",
         "unclosed_steps": "steps were entered and never left: use `with`",
         "other_thread": "calls came from another thread than the first: they were not recorded",
         "forward_unseen": "optimizer steps came without a forward pass that could be seen: call attach() after "
                           "torch.compile, with the compiled model",
         "device_unread": "steps have no device times: their events were not over when the file was closed"}


def ms(value: float) -> str:
    """Three figures."""
    if value >= 1000:
        return f"{value / 1000:.3g} s" if value < 100_000 else f"{value / 1000:,.0f} s"
    return f"{value:.3g} ms" if value < 100 else f"{value:.0f} ms"


def size(value: float) -> str:
    return f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:.1f} MiB"


def text(summary: Summary, header: dict) -> str:
    if summary.steps == 0:
        return "\n".join(_nothing(summary) + _remarks(summary))
    lines = _answer(summary) + [""] + _table(summary) + [""] + _circumstances(summary, header) + _remarks(summary)
    return "\n".join(lines + ["", "Next: " + advice(summary)])


def _nothing(s: Summary) -> list:
    if s.recorded == 0:
        return [f"{s.file}: 0 steps. The loop never entered observer.step() or observe_step(), and no attached model ran: "
                "put the body of the loop into `with observer.step():`, or call observer.attach(model, optimizer) first."]
    return [f"{s.file}: none of its {s.recorded:,} steps can be judged ({s.validation:,} of validation, {s.warm_up:,} of "
            "warm-up): record more training steps."]


def verdict(s: Summary) -> str:
    wait, compute = s.share("wait"), sum(s.share(name) for name in COMPUTE)
    seen = {phase.name for phase in s.phases}
    who = "The device waits for data" if s.clock == "device" else "The loop waits for data"
    if "wait" in seen and wait >= WAITS:
        return f"{who} {percent(wait)} of the time."
    if not seen & set(COMPUTE):
        return f"{who} {percent(wait, 1)} of the time." if "wait" in seen else "What it is made of was not recorded."
    busiest = max(COMPUTE, key=s.share)
    waits = f"waiting for data takes {percent(wait, 1)}" if "wait" in seen else "waiting for data was not recorded"
    return f"Computing takes {percent(compute)}, most of it {busiest} ({percent(s.share(busiest))}); {waits}."


def _answer(s: Summary) -> list:
    rate = f", {s.samples_per_s:,.4g} samples/s" if s.samples_per_s else ""
    spread = f"median of {s.steps:,}; 95 % within {ms(s.step.p95)}"
    return [f"A step takes {ms(s.step.median)} ({spread}){rate}. {verdict(s)}"]


def _table(s: Summary) -> list:
    by_name = {phase.name: phase for phase in s.phases}
    names = [name for name in ORDER if name in by_name]
    names += [name for name in by_name if name not in ORDER and name not in ("other", "own")]
    names += [name for name in ("other", "own") if name in by_name]
    lines = [f"  {'':26}{'median':>10}{'p95':>10}{'share':>8}"]
    for name in names:
        phase = by_name[name]
        label = DESCRIPTIONS.get(name, name)
        lines.append(f"  {label:26}{ms(phase.ms.median):>10}{ms(phase.ms.p95):>10}{percent(phase.share, 1):>8}")
    lines.append(f"  {'step, end to end':26}{ms(s.step.median):>10}{ms(s.step.p95):>10}{percent(1):>8}")
    return lines


def _circumstances(s: Summary, header: dict) -> list:
    facts = header["provenance"]
    parts = [header["model"]["class"] if header["model"] else None, header["precision"],
             f"{s.samples_per_step:,.4g} samples a step" if s.samples_per_step else None,
             f"{s.accumulate:.3g} forward passes a step" if s.accumulate and s.accumulate > 1.01 else None,
             facts.get("device_name") or facts.get("device"), facts.get("torch") and f"PyTorch {facts['torch']}",
             f"rank {header['rank']} of {header['ranks']}" if header["ranks"] > 1 else None]
    lines = ["  " + ", ".join(part for part in parts if part)]
    memory = [f"{label} {size(s.memory[name])}" for name, label in MEMORY.items() if name in s.memory]
    if memory:
        lines.append("  Memory: " + ", ".join(memory))
    clock = "the device's, by events" if s.clock == "device" else "the host's"
    lines.append(f"  Times are {clock}; {s.rule} ({s.warm_up} here).")
    return lines


def _remarks(s: Summary) -> list:
    lines = []
    if s.validation and s.steps:
        lines.append(f"  {counted(s.validation, 'validation step')} {'is' if s.validation == 1 else 'are'} left out")
    for end, count in sorted(s.ends.items()):
        kinds = ", ".join(f"{name} {counted(n, 'time')}" for name, n in s.exceptions.items()) if end == "exception" else ""
        lines.append(f"  {counted(count, 'step')} {ENDS.get(end, end)}" + (f" ({kinds})" if kinds else ""))
    for name, count in sorted(s.notes.items()):
        if name != "unclosed_steps" or "unclosed" not in s.ends:
            lines.append(f"  {count:,} {NOTES.get(name, name)}")
    if s.lost:
        lines.append(f"  {counted(s.lost, 'step')} {'was' if s.lost == 1 else 'were'} lost: the disk was too slow")
    if s.clock_jump_s:
        lines.append(f"  the wall clock moved by {s.clock_jump_s:+} s during the run (set anew, or the machine slept); step "
                     "times do not depend on it")
    if not s.complete:
        lines.append("  the recording has no end: the program was killed, or still runs")
    lines += [f"  damaged: {damage}" for damage in s.damaged[:10]]
    if len(s.damaged) > 10:
        lines.append(f"  damaged: {counted(len(s.damaged) - 10, 'more line')}")
    return lines


def ranks(summaries: list, headers: list) -> str:
    """One line on several recordings of one run: ranks step together, so the slowest one decides."""
    timed = [(s.step.median, header["rank"]) for s, header in zip(summaries, headers) if s.steps]
    if len(timed) < 2:
        return "Only one of these has steps to compare." if timed else "None of these has steps to compare."
    (fast, first), (slow, last) = min(timed), max(timed)
    waits = [(s.share("wait"), header["rank"]) for s, header in zip(summaries, headers) if s.steps]
    share, waiting = max(waits)
    return (f"{len(timed)} recordings: the slowest step is rank {last}'s with {ms(slow)}, the fastest rank {first}'s with "
            f"{ms(fast)}; rank {waiting} waits for data most, {percent(share, 1)}.")


def advice(s: Summary) -> str:
    seen = {phase.name for phase in s.phases}
    if "wait" in seen and s.share("wait") >= WAITS:
        return ("measure the loader with `stoker probe FILE.py:FUNCTION` (or the folder), then `stoker plan MODEL --data "
                "PROBE` says how many workers it needs.")
    if not seen & set(COMPUTE):
        return "observer.attach(model, optimizer) tells forward, backward and optimizer apart."
    if s.share("other") >= UNNAMED:
        return (f"{percent(s.share('other'))} of the time is outside all phases (logging, .item(), metrics, checkpoints): "
                "put `with observer.phase(...)` around the suspects.")
    if "wait" not in seen:
        return "iterate over observer.batches(loader) to see how long the loop waits for its data."
    return ("`stoker predict MODEL --gpu GPU --batch B` says what this step should take; a gap between the two is worth a "
            "look.")
