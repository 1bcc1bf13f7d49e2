"""How fast the machine is, beside what is usual for it, for readings with several threads."""

from __future__ import annotations

from ..measure import reference

_READINGS = 3         # taken at a time; the least counts
_LEAST_READINGS = 5   # before any of them says what is usual
_MOST_KEPT = 2000
MAX_SLOWER = 0.08     # beyond the usual time: clocks vary by a few per cent from one moment to the next, neighbours cost 20 and more


class Speed:
    """Readings of the reference kernel, which keeps as many threads busy as what is measured: it is as fast as the slowest core."""

    def __init__(self, usual_ms: dict | None = None):
        self._usual_before = {int(threads): ms for threads, ms in (usual_ms or {}).items()}
        self._kernels: dict = {}
        self._seen: dict = {}

    def reading(self, threads: int = 1) -> float:
        """Milliseconds of the work just now; PyTorch has to be at so many threads."""
        if threads not in self._kernels:
            self._kernels[threads] = reference.Kernel(reference.OPERATORS, threads)
        found = self._kernels[threads].milliseconds(_READINGS)
        seen = self._seen.setdefault(threads, [])
        if len(seen) < _MOST_KEPT:
            seen.append(found)
        return found

    def usual(self, threads: int = 1) -> float:
        """The lower quartile of all readings, of an earlier run's too: the speed when no neighbour is on the same cores."""
        ordered, before = sorted(self._seen.get(threads, [])), self._usual_before.get(threads)
        if len(ordered) < _LEAST_READINGS:
            return before or (ordered[0] if ordered else 0.0)
        found = ordered[len(ordered) // 4]
        return min(found, before) if before else found

    def all_usual(self) -> dict:
        """Reference times by number of threads, for the file."""
        return {str(threads): round(self.usual(threads), 5) for threads in sorted({*self._seen, *self._usual_before})}

    def is_slow(self, reading_ms: float, threads: int = 1) -> bool:
        return reading_ms > self.usual(threads) * (1 + MAX_SLOWER)
