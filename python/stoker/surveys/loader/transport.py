"""What a DataLoader spends on moving batches, on samples beyond their stages, and on its processes."""

from __future__ import annotations

import gc
import statistics
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from ...measure import machine
from .images import IMAGE_BYTES, Images, children_cpu, say
from .stages import non_negative_fit


class Ready(Dataset):
    """Samples that cost nothing: tensors made beforehand, `tensors` of them and a label."""

    def __init__(self, count, tensors, floats):
        self.count = count
        self.parts = [torch.zeros(floats) for _ in range(tensors)]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return (*self.parts, index)


def run_ready(batch, tensors, floats, batches):
    """One epoch of one worker: its CPU, then wall and CPU of receiving a batch that is there already, in ms."""
    data = Ready(batch * batches, tensors, floats)
    before = children_cpu()
    walls, cpus = [], []
    iterator = iter(DataLoader(data, batch_size=batch, num_workers=1))
    for _ in range(batches):
        while not iterator._worker_result_queue._reader.poll(1):  # nothing public says that a batch is ready
            pass
        time.sleep(0.003)
        wall, cpu = time.perf_counter(), time.thread_time()
        held = next(iterator)  # the batch before is released here, as in a training loop
        walls.append(time.perf_counter() - wall)
        cpus.append(time.thread_time() - cpu)
    del iterator, held

    def quartile(times):
        return 1e3 * float(np.percentile(times[3:], 25))

    return (children_cpu() - before) * 1e3, quartile(walls), quartile(cpus)


def fit_transport(repetitions):
    """Regressions over runs that differ in one thing at a time; see docs/models/input.md."""
    grid = [(8, 1, 16), (64, 1, 16), (256, 1, 16), (8, 4, 16), (8, 16, 16), (64, 4, 16),
            (8, 1, 150528), (32, 1, 150528), (64, 1, 150528), (128, 1, 150528)]  # batch, tensors, floats
    batches, rows = 20, {}
    for _ in range(repetitions):
        for key in grid:
            long = run_ready(*key, batches=batches * 2)
            short = run_ready(*key, batches=batches)
            # Twice as many batches less half as many: start and end of the workers cancel out.
            row = ((long[0] - short[0]) / batches, long[1], long[2])
            rows.setdefault(key, []).append(row)
    worker, receive, receive_cpu, design = [], [], [], []
    for (b, t, f), found in rows.items():
        best = [statistics.median(r[0] for r in found), min(r[1] for r in found), min(r[2] for r in found)]
        bytes_ = b * (t * f * 4 + 8)
        design.append([1, t + 1, b * (t + 1), bytes_])
        receive.append(best[1])
        receive_cpu.append(best[2])
        # The worker's thread that hands out descriptors works while the receiver waits for it: that time is
        # counted once, with the receiver.
        worker.append(max(0.01, best[0] - (best[1] - best[2])))
        say(f"  batch {b:4d}, {t + 1:2d} tensors, {bytes_ / 1e6:8.2f} MB: worker {best[0]:7.3f} ms CPU, "
            f"receive {best[1]:7.3f} ms wall, {best[2]:7.3f} ms CPU")
    design = np.array(design, dtype=float)
    receive, worker = np.array(receive), np.array(worker)
    k_main = non_negative_fit([design[:, 0], design[:, 1], design[:, 3]], receive, 1 / receive)
    k_worker = non_negative_fit(list(design.T), worker, 1 / worker)
    guess = design[:, [0, 1, 3]] @ k_main
    return {"per_batch_main_ms": k_main[0], "per_tensor_main_ms": k_main[1], "per_byte_main_ns": k_main[2] * 1e6,
            "per_batch_worker_ms": k_worker[0], "per_tensor_worker_ms": k_worker[1],
            "collate_per_sample_ms": 2 * k_worker[2], "collate_shared_ns_per_byte": k_worker[3] * 1e6,
            }, float(np.mean(np.abs(guess / receive - 1)) * 100)


def fit_private_collate(repetitions):
    """ns per byte of collating in the training process (workers = 0)."""
    points = {}
    for _ in range(repetitions):
        for batch in (8, 32, 64, 128):
            loader = DataLoader(Ready(batch * 12, 1, 150528), batch_size=batch)
            times = []
            mark = time.thread_time()
            for _held in loader:
                times.append(time.thread_time() - mark)
                mark = time.thread_time()
            points.setdefault(batch, []).append(statistics.median(times[2:]))
    x = np.array([b * IMAGE_BYTES for b in points], dtype=float)
    y = np.array([min(t) for t in points.values()])
    return float((x * y).sum() / (x * x).sum() * 1e9)


def fit_samples(paths, stages_ms, transport, repetitions):
    """What a sample costs in a worker beyond its stages and its collating (memory that is faulted in again), and
    what every process loses when there are twice as many as cores. All from the CPU clock of real loaders."""
    cores = machine.whole_cores()
    found = {}
    for _ in range(repetitions):
        for batch in (32, 128):
            for workers in (1, cores, 2 * cores):
                before = children_cpu()
                for _ in DataLoader(Images(paths), batch_size=batch, num_workers=workers, shuffle=True):
                    pass
                found.setdefault((batch, workers), []).append((children_cpu() - before) / len(paths) * 1e3)
    best = {key: min(values) for key, values in found.items()}
    say(f"  CPU ms a sample in workers: {({f'{b}x{w}': round(v, 3) for (b, w), v in best.items()})}")
    per_batch = transport["per_batch_worker_ms"] + 2 * transport["per_tensor_worker_ms"]
    collate = transport["collate_shared_ns_per_byte"] * IMAGE_BYTES * 1e-6
    extra = [best[b, 1] - stages_ms - collate - transport["collate_per_sample_ms"] - per_batch / b for b in (32, 128)]
    crowding = [best[b, 2 * cores] / best[b, cores] - 1 for b in (32, 128)]
    return {"sample_fault_ns_per_byte": max(0.0, statistics.mean(extra) * 1e6 / IMAGE_BYTES),
            "oversubscription": max(0.0, statistics.mean(crowding))}


def fit_processes(paths, repetitions):
    """Forking and joining workers, from loaders whose samples cost nothing; starting them, from the first
    picture of a fresh worker less the same picture in the same worker's hands later."""
    counts = [1, 2, 4]
    fork, end, reset = ({w: [] for w in counts} for _ in range(3))
    startup = []
    for repetition in range(repetitions):
        same = Images([paths[repetition % len(paths)]] * 12)
        iterator = iter(DataLoader(same, batch_size=1, num_workers=1, prefetch_factor=1))
        waits = []
        for _ in range(12):
            mark = time.perf_counter()
            next(iterator)
            waits.append(time.perf_counter() - mark)
        del iterator
        startup.append(waits[0] - statistics.median(waits[2:]))
        for w in counts:
            data = Ready(w * 8, 1, 16)
            t0 = time.perf_counter()
            iterator = iter(DataLoader(data, batch_size=1, num_workers=w))
            t1 = time.perf_counter()
            for _ in iterator:
                pass
            gc.collect()
            t3 = time.perf_counter()
            del iterator
            end[w].append(time.perf_counter() - t3)
            fork[w].append(t1 - t0)
            keeper = DataLoader(data, batch_size=1, num_workers=w, persistent_workers=True)
            list(keeper)
            t4 = time.perf_counter()
            next(iter(keeper))
            reset[w].append(time.perf_counter() - t4)
            del keeper

    def slope(times):
        return max(0.0, float(np.polyfit(counts, [1e3 * min(times[w]) for w in counts], 1)[0]))

    return {"fork_per_worker_ms": slope(fork), "worker_startup_ms": 1e3 * float(np.percentile(startup, 25)),
            "shutdown_per_worker_ms": slope(end), "epoch_reset_ms": 1e3 * min(reset[1])}


def worker_private_mb(paths):
    """Memory that a worker does not share with its parent while it decodes."""
    loader = DataLoader(Images(paths[:128]), batch_size=16, num_workers=1)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    pid = iterator._workers[0].pid  # no public way to the process
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0
