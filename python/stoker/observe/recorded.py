"""What an observation file holds, as reader.py found it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Damage:
    """A line that could not be used."""

    file: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}"


@dataclasses.dataclass
class Recorded:
    """An observation file's content. `rows` are dicts by column name; times in ns, sizes in bytes, 0 where a step did not come by."""

    file: str
    header: dict
    rows: list = dataclasses.field(default_factory=list)
    memory: list = dataclasses.field(default_factory=list)
    exceptions: list = dataclasses.field(default_factory=list)
    blocks: list = dataclasses.field(default_factory=list)
    damaged: list = dataclasses.field(default_factory=list)
    end: dict | None = None  # None: the recording was cut off, or goes on
    truncated: bool = False  # the last line is not whole: a crash, or a write in progress

    @property
    def on_device(self) -> bool:
        """Phases carry the device's times besides the host's."""
        return self.header["timing"] == "device"

    @property
    def phases(self) -> list:
        """The names of the phases that the file has columns for."""
        names = self.header["columns"]
        return [name[:-3] for name in names if name.endswith("_ns") and not name.startswith("device_")
                and name not in ("start_ns", "gap_ns", "total_ns")]
