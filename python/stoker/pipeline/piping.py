"""How long a message takes through the pipe of a DataLoader's result queue: it holds 64 KiB, so writer and reader are at it together."""

from __future__ import annotations

import multiprocessing
import statistics
import time

from ..measure import machine

PIPE_BYTES = 1 << 16  # a pipe's usual capacity: below it, nobody waits
_LARGEST = 256 << 20  # larger ones are taken in proportion
_WARM, _FEWEST, _MOST = 2, 3, 40  # messages: that do not count, that do


def _writer(receiver, sender, size: int) -> None:
    receiver.close()  # else this process would read from itself, and go on waiting once the reader is gone
    text = b"x" * size
    try:
        while True:
            sender.send_bytes(text)
    except OSError:
        pass  # the reader has enough


def pipe_pass(send, sizes: list, *, seconds: float) -> None:
    """Reports ("pipe", [size, ms]) for each size: the time of either end while a message of that many bytes goes through."""
    for size in sizes:
        send("pipe", [size, _through(min(size, _LARGEST), seconds / len(sizes)) * max(1.0, size / _LARGEST)])


def _through(size: int, seconds: float) -> float:
    """ms from message to message, of a writer that never rests."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_writer, args=(receiver, sender, size), daemon=True)
    process.start()
    sender.close()
    until, times = time.monotonic() + seconds, []
    try:
        while len(times) < _WARM + _FEWEST or time.monotonic() < until and len(times) < _WARM + _MOST:
            begin = time.perf_counter()
            receiver.recv_bytes()
            times.append(time.perf_counter() - begin)
    finally:
        receiver.close()
        process.kill()
        process.join()
    # The lower quartile: somebody else's moments are no part of it. On one core the two ends take turns.
    return 1e3 * statistics.quantiles(times[_WARM:], n=4)[0] / (2 if machine.usable_cores() < 2 else 1)
