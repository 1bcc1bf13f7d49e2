"""The GPU's clock, draw, temperature and reasons to slow down, read by one nvidia-smi that runs beside the measurements."""

import shutil
import subprocess
import threading

FIELDS = ("clocks.sm", "power.draw", "temperature.gpu", "clocks_throttle_reasons.active")
COLUMNS = ("sm_mhz", "power_w", "temperature_c", "throttle")
EVERY_MS = 500
_IDLE, _SETTING = 0x1, 0x2  # nothing runs; somebody set the applications' clocks: neither slows what runs


class Watch:
    """`latest()` after each case; `summary()` of all that was seen while something ran. Both are empty without nvidia-smi."""

    def __init__(self, wanted, which="0"):
        self._latest, self._seen, self._lock, self._process = {}, [], threading.Lock(), None
        if wanted and shutil.which("nvidia-smi"):
            command = ["nvidia-smi", "-i", which, "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits",
                       "-lms", str(EVERY_MS)]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            sample = parse(line)
            if sample:
                with self._lock:
                    self._latest = sample
                    if not _mask(line) & _IDLE:
                        self._seen.append(sample)

    def latest(self):
        with self._lock:
            return dict(self._latest)

    def summary(self):
        with self._lock:
            seen = list(self._seen)
        clocks = sorted(s["sm_mhz"] for s in seen if s["sm_mhz"] is not None)
        reasons = {}
        for s in seen:
            if s["throttle"]:
                reasons[s["throttle"]] = reasons.get(s["throttle"], 0) + 1
        powers = [s["power_w"] for s in seen if s["power_w"] is not None]
        return {"samples": len(seen), "sm_mhz_median": clocks[len(clocks) // 2] if clocks else None,
                "sm_mhz_least": clocks[0] if clocks else None, "sm_mhz_low": clocks[len(clocks) // 10] if clocks else None,
                "power_w_most": max(powers) if powers else None,
                "throttle_samples": reasons}

    def close(self):
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


def _number(text):
    try:
        return float(text)
    except ValueError:
        return None  # "[N/A]" on boards that do not tell


def _mask(line):
    """nvidia-smi's reasons for the clock, of a line."""
    try:
        return int(line.rpartition(",")[2], 16)
    except ValueError:
        return 0


def parse(line):
    """A sample of one line; empty for a line that is none. `throttle` is nvidia-smi's bit mask, empty when nothing holds it back."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(FIELDS):
        return {}
    mask = _mask(line) & ~(_IDLE | _SETTING)
    return {"sm_mhz": _number(cells[0]), "power_w": _number(cells[1]), "temperature_c": _number(cells[2]),
            "throttle": hex(mask) if mask else ""}
