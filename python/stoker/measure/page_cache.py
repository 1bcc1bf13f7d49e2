"""The page cache: files dropped from it, what it holds of them, and what reading them anew costs."""

from __future__ import annotations

import ctypes
import mmap
import os
import time

_MOST_LEFT = 0.02  # share of files that were dropped, up to which a read of them is cold


def evict(paths: list) -> None:
    """Asks the system to drop the files from the page cache; needs no privilege, and clean pages only go."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def resident_share(paths: list) -> float:
    """Share of the files' pages that the page cache holds (mincore)."""
    import numpy as np

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    pages = resident = 0
    for path in paths:
        size = os.path.getsize(path)
        if size == 0:
            continue
        count = -(-size // mmap.PAGESIZE)
        with open(path, "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as view:
            vector = ctypes.create_string_buffer(count)
            if libc.mincore(np.frombuffer(view, np.uint8).ctypes.data, size, vector) == 0:
                resident += sum(byte & 1 for byte in vector.raw[:count])
                pages += count
    return resident / pages if pages else 1.0


def cold_reads(paths: list) -> dict | None:
    """Reads the files after dropping them from the page cache, half by one reader and half by four: what a lone reader
    waits for a file and for its bytes, and what several gain. None where they cannot be dropped."""
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    evict(paths)
    if resident_share(paths) > _MOST_LEFT:
        return None

    def read(path):
        start = time.perf_counter()
        with open(path, "rb", buffering=0) as file:
            count = len(file.readall())
        return count, time.perf_counter() - start

    lone = [read(path) for path in paths[::2]]
    others = paths[1::2]
    start = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(read, others))
    many_s = time.perf_counter() - start
    sizes, seconds = np.array(lone).T
    slope, seek = np.polyfit(sizes, seconds, 1)
    if slope <= 0 or seek < 0:  # no line to be seen: all by the file, or all by the byte
        slope, seek = (0.0, float(seconds.mean())) if slope <= 0 else (seconds.sum() / sizes.sum(), 0.0)
    expected_s = sum(seek + slope * count for count, _ in together)
    return {"seek_ms": round(1e3 * float(seek), 4), "bandwidth": round(1 / slope) if slope > 0 else 0,
            "speedup": round(max(1.0, expected_s / many_s), 3)}
