"""The binary under test: its commands run once each, side by side, and their answers as Python's own values."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import json
import math
import os
import pathlib
import subprocess
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TIME_LIMIT_S = 300
GOOD, NO, USAGE, BAD = 0, 1, 2, 3
HOST = "cores=16,ram=64G,shm=16G"  # so that no answer depends on the machine that tests


@dataclasses.dataclass(frozen=True)
class Done:
    words: tuple
    code: int
    out: str
    error: str

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"stoker {' '.join(self.words)}\n-> {self.code}: {self.error.strip()}"


class Stoker:
    """Runs commands in a folder of its own with a home of its own, and remembers what each answered."""

    def __init__(self) -> None:
        self.binary, self.kept = os.environ["STOKER_BINARY"], tempfile.TemporaryDirectory(prefix="properties-")
        self.folder = pathlib.Path(self.kept.name).resolve()
        self.environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder), "LC_ALL": "C", "TZ": "UTC",
                            "NO_COLOR": "1", "COLUMNS": "100", "STOKER_DATA": str(REPOSITORY / "data"),
                            **{name: os.environ[name] for name in ("TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}}
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        self.once = functools.lru_cache(maxsize=None)(self.run)

    def run(self, *words: str) -> Done:
        done = subprocess.run([self.binary, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIME_LIMIT_S)
        return Done(words, done.returncode, done.stdout, done.stderr)

    def __call__(self, *words) -> Done:
        return self.once(*map(str, words))

    def each(self, commands) -> list:
        """The answers of several commands, in their order."""
        return list(self.pool.map(lambda words: self(*words), commands))

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)


@functools.lru_cache(maxsize=1)
def stoker() -> Stoker:
    return Stoker()


def is_figure(value) -> bool:
    return isinstance(value, dict) and {"value", "low", "high"} <= set(value)


def walk(value, path: str = ""):
    """(path, value) of everything in an answer, figures whole."""
    yield path, value
    if isinstance(value, dict) and not is_figure(value):
        for name, inner in value.items():
            yield from walk(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from walk(inner, f"{path}[{number}]")


def at(value, path: str):
    """answer["memory"]["max_batch"] of "memory.max_batch"; None where there is none."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def differences(left, right, ignored: tuple = ()) -> list:
    """Paths at which two answers differ."""
    def flat(answer):
        return {path: value for path, value in walk(answer)
                if not isinstance(value, (dict, list)) or is_figure(value) or not value}

    left, right = flat(left), flat(right)
    return [f"{path}: {left.get(path)} and {right.get(path)}" for path in sorted(left.keys() | right.keys())
            if left.get(path) != right.get(path) and not any(path.startswith(name) for name in ignored)]


def near(a: float, b: float, relative: float = 1e-9) -> bool:
    return math.isclose(a, b, rel_tol=relative, abs_tol=1e-9)
