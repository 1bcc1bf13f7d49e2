"""What was odd about a data set: counted by name, with the cure."""

from __future__ import annotations

from ..plain import counted, percent

_SLOW_FIRST = 10  # times the others
_SLOW_FIRST_MS = 200
_SLOW_SAMPLER_MS = 1000
_INDEX_BYTES = 48  # of a shuffled index: in a tensor, and as a Python number in a list
_UNLIKE = 1.5  # times another worker's, from which on two streams differ
_UNLIKE_MS = 0.1  # below, the time of a sample is that of its clocks


def human_bytes(count: float) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def human_ms(ms: float) -> str:
    return f"{ms / 1e3:.1f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2f} ms"


def advice_for_death(outcome) -> str:
    import signal

    if outcome.end == "signal" and outcome.code == signal.SIGBUS:
        return "; /dev/shm is too small for its batches: enlarge it (docker run --shm-size=8g), or take smaller batches"
    if outcome.end == "signal" and outcome.code == signal.SIGKILL:
        return "; memory probably ran out: make samples or batches smaller"
    if outcome.end == "signal":
        return "; a library crashed: run one sample under python -X faulthandler"
    if outcome.end == "exit":
        return "; the data set ended its process: do not call exit() in it"
    return ""


class Findings:
    def __init__(self):
        self._rows = {}

    def add(self, name: str, advice: str, *, severity: str = "warning", count: int = 1) -> None:
        row = self._rows.setdefault(name, {"name": name, "severity": severity, "count": 0, "advice": advice})
        row["count"] += int(count)

    def rows(self) -> list:
        return sorted(self._rows.values(), key=lambda row: row["severity"] != "warning")

    # -- one by one -----------------------------------------------------------------------------------------------------

    def effects(self, outcome, source) -> None:
        """What the data set does beside giving samples."""
        effects = outcome.last("effects")
        if effects is None:
            return
        if effects["threads"]:
            self.add("threads_started", f"Making samples started {effects['threads']} thread"
                     f"{'s' if effects['threads'] > 1 else ''} in a worker: with W workers there are W times as many. "
                     "Limit them (OMP_NUM_THREADS=1, cv2.setNumThreads(0)).", count=effects["threads"])
        if effects["processes"]:
            self.add("processes_started", f"Making samples started {effects['processes']} process"
                     f"{'es' if effects['processes'] > 1 else ''}: workers of a DataLoader may not use multiprocessing, "
                     "and what they start outlives them. Let the workers be the processes.", count=effects["processes"])
        if effects["moved"]:
            self.add("directory_changed", "Making a sample changed the working directory: relative paths mean "
                     "something else afterwards. Use absolute paths.")

    def cores(self, cores: float) -> None:
        if cores < 1:
            self.add("less_than_a_core", f"This process may use {cores:g} cores: workers share them with the training "
                     "loop, and samples take longer on the clock than the CPU time said here. Raise the quota "
                     "(docker run --cpus), one core for each worker.")

    def first_sample(self, first_ms: float, mean_ms: float) -> None:
        if first_ms > _SLOW_FIRST_MS and first_ms > _SLOW_FIRST * mean_ms:
            self.add("slow_first_sample", f"The first sample of a process took {human_ms(first_ms)}, others take "
                     f"{human_ms(mean_ms)}: each worker pays that at its start. Open what it opens once, in __init__, "
                     "or keep workers (persistent_workers=True).")

    def sampler(self, source, ms: float) -> None:
        if ms < _SLOW_SAMPLER_MS:
            return
        listed = f"about {human_bytes(source.samples * _INDEX_BYTES)} and " if source.sampler is None else ""
        self.add("slow_sampler", f"The sampler takes {listed}{human_ms(ms)} of the training process until it has given the "
                 "first batch of an epoch, while workers and GPU wait. Draw indices as they are needed (RandomSampler "
                 "with replacement=True, or blocks that are shuffled one by one).")

    def capped(self, source, fits: int, by_time: int) -> None:
        if source.cap is None:
            return
        if fits < source.batch:
            self.add("batch_fits_no_memory", f"Batches of {source.batch} were not made: their samples need more than a "
                     f"quarter of the memory that is left; {source.cap} at a time were measured. Make samples smaller, "
                     "or take fewer workers and smaller batches.")
        else:
            self.add("slow_samples", f"A batch of {source.batch} takes longer than the budget allows: {source.cap} "
                     "samples at a time were measured. Give a longer --budget for a surer answer.", severity="note")

    def shared_memory(self, source, sample_bytes: int, free: float, workers: int, prefetch: int) -> None:
        need = sample_bytes * source.batch * (workers * prefetch + 1)
        if need > free:
            self.add("shm_too_small", f"{counted(workers, 'worker')} with {counted(prefetch, 'batch')} of {source.batch} each need "
                     f"{human_bytes(need)} of /dev/shm, which has {human_bytes(free)} free: training would end with a "
                     "bus error. Enlarge it (docker run --shm-size, or mount -o remount,size=), or lower batch, workers "
                     "or prefetch_factor.")

    def after_samples(self, outcome, source, doc: dict, made: int) -> None:
        failures = outcome.last("failures")
        if failures is not None and failures[0]:
            first = failures[1]
            self.add("sample_raised", f"{failures[0]} of {failures[0] + made} samples raised, first index "
                     f"{first['index']} ({first['error']}): a DataLoader ends at the first. Mend or leave out these "
                     "samples.", count=failures[0])
        collate = outcome.last("collate failures")
        if collate is not None and collate[0]:
            first = collate[1]
            why = f": {first['difference']}" if first.get("difference") else ""
            cure = ("resize or pad samples to one shape, or return the DataLoader with its collate_fn"
                    if doc.get("loader") is None or not doc["loader"]["custom_collate"] else "mend the collate_fn")
            self.add("collate_failed", f"{counted(collate[0], 'batch')} could not be put together ({first['error']}){why}. "
                     f"Cure: {cure}.", count=collate[0])
        self._pinning(outcome.last("left unpinned"), doc)
        if outcome.output_lines or outcome.output:
            lines = max(1, outcome.output_lines)
            head = outcome.output.strip().splitlines()
            self.add("output_printed", f"Making samples printed {lines} line{'s' if lines > 1 else ''}"
                     f"{', first: ' + head[0][:80] if head else ''}. Printing costs time, and workers' lines mix.",
                     severity="note", count=lines)
        if outcome.end == "signal" or outcome.end == "exit":
            self.add("worker_died", f"The process that made samples did not live to the end: {outcome.why()}"
                     f"{advice_for_death(outcome)}. The figures are of what came before.")
        if outcome.end == "error":
            self.add("worker_failed", f"Making samples ended early: {outcome.error['message']}. The figures are of what "
                     "came before.")

    def _pinning(self, left: dict | None, doc: dict) -> None:
        """What DataLoader(pin_memory=True) does not pin, or cannot."""
        if left is None:
            return
        asked = bool((doc.get("loader") or {}).get("pin_memory"))
        severity = "warning" if asked else "note"
        if left["error"]:
            self.add("pin_memory_raised", f"The batch's own pin_memory() raised ({left['error']}): a DataLoader with "
                     "pin_memory=True ends there. Mend it, and let it return the batch.", severity=severity)
        if left["bytes"]:
            held = f" in {left['type']}" if left["type"] else ""
            self.add("batch_not_pinned", f"pin_memory=True leaves {human_bytes(left['bytes'])} of a batch pageable: it looks "
                     f"into dicts, lists and tuples, and these tensors lie{held}, which has no pin_memory() that reaches them. "
                     "Copies to a GPU then hold up the loop, non_blocking=True or not; forecast them with --no-pin. Give the "
                     "class a pin_memory() that pins its tensors and returns self, or let collate_fn return a dict.",
                     severity=severity)

    def streams(self, found: dict, source) -> None:
        """What is odd about how an IterableDataset shares its samples out to workers."""
        rows, workers = found["workers"], found["num_workers"]
        if found["same"]:
            self.add("streams_repeat", f"Each of {workers} workers gives the same samples: an epoch holds every sample "
                     f"{workers} times. Share them out in __iter__ by torch.utils.data.get_worker_info() (id, num_workers).",
                     severity="warning" if source.loader is not None and source.loader.num_workers > 1 else "note")
        empty = sum(1 for row in rows if row["samples"] == 0)
        if empty:
            self.add("workers_without_samples", f"{empty} of {workers} workers get no sample: the data set has fewer parts "
                     f"(shards, files, row groups) than workers, and {workers - empty} "
                     f"worker{'s' if workers - empty > 1 else ''} make{'' if workers - empty > 1 else 's'} all. Cut the data "
                     "into a multiple of the workers' number of parts, or share single samples out.", count=empty)
        means = [sum(row["cpu_ms"] + row["wait_ms"]) / len(row["cpu_ms"]) for row in rows if row["cpu_ms"]]
        if len(means) > 1 and max(means) > _UNLIKE * min(means) and max(means) > _UNLIKE_MS:
            self.add("streams_differ", f"A sample of the slowest worker takes {human_ms(max(means))}, one of the fastest "
                     f"{human_ms(min(means))}: batches are handed out in turn, so that all workers keep the pace of the "
                     "slowest. Share samples out so that each worker gets the same mixture.")
        if found.get("seed_spread"):
            self.add("streams_by_seed", f"Worker 0's samples cost {percent(found['seed_spread'])} more or less with another "
                     "seed: epochs differ from each other by as much, and the band with them.", severity="note")
        lengths = [row["samples"] for row in rows if row["samples"] is not None]
        if not empty and len(lengths) == len(rows) and max(lengths) > _UNLIKE * min(lengths):
            self.add("streams_unequal", f"Workers get between {min(lengths):,} and {max(lengths):,} samples: at the end of an "
                     "epoch few workers make all batches. Cut the data into a multiple of the workers' number of parts.")

    def hung(self) -> None:
        self.add("sample_hangs", "Making samples did not come to an end in many times the time that they usually take: "
                 "one of them waits for something (a lock, a connection, a file of a dead server), and training would "
                 "stand still. The figures are of what came before. Give what it waits for a time limit.")

    def after_start(self, facts: dict, outcome, doc: dict) -> None:
        if not facts["picklable"]:
            self.add("not_picklable", f"The data set cannot be sent to workers that are spawned ({facts['why_not']}): "
                     "only fork works (Python 3.14 takes forkserver by default). Use a function or a class in the place "
                     "of a lambda, and open files in the worker.", severity="note" if not _spawns(doc) else "warning")
        if outcome.end == "signal":
            self.add("start_failed", f"Starting workers did not end well: {outcome.why()}{advice_for_death(outcome)}.")

    def objects(self, found: dict, doc: dict) -> None:
        workers = (doc.get("loader") or {}).get("num_workers") or 1
        self.add("objects_copied", f"The data set holds {found['objects']:,} Python objects ({human_bytes(found['object_bytes'])}): "
                 f"every forked worker copies them while it reads, {human_bytes(found['object_bytes'] * workers)} with "
                 f"{workers} worker{'s' if workers > 1 else ''}. Keep paths and labels in numpy arrays or tensors.")


def _spawns(doc: dict) -> bool:
    return (doc.get("loader") or {}).get("start_method") in ("spawn", "forkserver")
