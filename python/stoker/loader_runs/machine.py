"""What else the machine does while something is measured, and how fast it is."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import time

# A repetition is thrown away above these. Written into the rows file as text (RULE).
MAX_FOREIGN = 0.03   # busy time of other processes, share of all cores' time
MAX_STEAL = 0.02     # time that the hypervisor gave to others, likewise
MAX_SPEED = 0.05     # reference kernel's speed against that at calibration, either way
AGREEMENT = 0.05     # between a point's two best repetitions: neighbours on the same physical core show on no clock
RULE = (f"A repetition is thrown away when other processes used more than {MAX_FOREIGN:.0%} of the cores' time, when "
        f"the hypervisor took more than {MAX_STEAL:.0%}, when the reference kernel ran more than {MAX_SPEED:.0%} slower "
        "or faster than at calibration, when others used /dev/shm meanwhile, or when the epoch failed. A point needs two "
        f"good repetitions whose epochs agree within {AGREEMENT:.0%}; without them it is dropped and counted as such. The "
        "best good repetition counts.")
_TICK = os.sysconf("SC_CLK_TCK")


def usage() -> dict:
    """Clocks in seconds: wall, all cores' busy and stolen time, CPU time of this process and its ended children."""
    with open("/proc/stat") as file:
        fields = [int(value) / _TICK for value in file.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, interrupts, soft, steal = fields
    own = sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    return {"wall": time.perf_counter(), "busy": user + nice + system + interrupts + soft, "steal": steal, "own": own}


def foreign_between(before: dict, after: dict) -> tuple:
    """(share of others, share stolen) of all cores' time. Clock ticks limit it to about 10 ms."""
    total = (after["wall"] - before["wall"]) * os.cpu_count()
    other = (after["busy"] - before["busy"]) - (after["own"] - before["own"])
    return max(0.0, other / total), max(0.0, (after["steal"] - before["steal"]) / total)


def objections(foreign: float, steal: float, speed: float) -> list:
    """Why a repetition does not count, by RULE; empty: it does."""
    reasons = []
    if foreign > MAX_FOREIGN:
        reasons.append(f"other processes used {foreign:.1%} of the cores")
    if steal > MAX_STEAL:
        reasons.append(f"the hypervisor took {steal:.1%}")
    if abs(speed - 1) > MAX_SPEED:
        reasons.append(f"the reference kernel ran at {speed:.3f} of its usual speed")
    return reasons


class Reference:
    """A fixed piece of work, mixed of interpreter, arithmetic and memory traffic; its CPU time is the machine's speed."""

    def __init__(self):
        import numpy as np

        self.values = np.random.default_rng(7).random(200_000)
        self.large = np.zeros(1 << 20)

    def _once(self) -> float:
        start = time.thread_time()
        total = 0
        for i in range(60_000):
            total += i ^ (total & 255)
        self.values.copy().sort()
        for _ in range(4):
            self.large += 1.0
        return (time.thread_time() - start) * 1e3

    def usual(self, seconds: float = 2.0) -> float:
        """The lower quartile over some time: the speed when no neighbour is on the same physical core."""
        until, found = time.monotonic() + seconds, []
        while time.monotonic() < until or len(found) < 8:
            found.append(self.milliseconds(3))
            time.sleep(0.05)
        return sorted(found)[len(found) // 4]

    def settle(self, calibrated_ms: float, patience_s: float = 4.0) -> bool:
        """Waits until the machine runs at about its calibrated speed again: neighbours on the same physical cores come
        and go. False: it did not within `patience_s`."""
        until = time.monotonic() + patience_s
        while self.milliseconds(3) > calibrated_ms * (1 + 0.7 * MAX_SPEED):
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def milliseconds(self, times: int = 5) -> float:
        return min(self._once() for _ in range(times))


# ---------------------------------------------------------------------------------------------------- shared memory


def shared_memory_used() -> int:
    """Bytes in use in /dev/shm, by whomever."""
    facts = os.statvfs("/dev/shm")
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize


# -------------------------------------------------------------------------------------------------------- page cache


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
    if resident_share(paths) > 0.02:
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
