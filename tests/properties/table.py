"""The settings as the binary itself lists them, and as the page of the documentation has them."""

from __future__ import annotations

import dataclasses
import functools
import re

from command import stoker


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    value: str  # what stands behind the flag; "" of a switch
    pair: bool  # --[no-]NAME
    verbs: tuple
    words: str
    default: str
    aliases: tuple

    @property
    def devices(self) -> str:
        found = re.search(r"; (GPU|CPU) only$", self.words)
        return found.group(1).lower() if found else ""

    @property
    def range(self) -> tuple | None:
        """(least, most) of a number, None where there is no end."""
        number = r"([\d.,]+)"
        for pattern, ends in ((rf"\({number} to {number}\)", (1, 2)), (rf"\(above {number} up to {number}\)", (1, 2)),
                              (rf"\(from {number}\)", (1, None)), (rf"\(above {number}\)", (1, None))):
            if found := re.search(pattern, self.words):
                return tuple(float(found.group(end).replace(",", "")) if end else None for end in ends)
        return None

    @property
    def excludes_least(self) -> bool:
        return "(above " in self.words


def cells(line: str) -> list:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@functools.lru_cache(maxsize=1)
def rows() -> tuple:
    """Rows of every verb."""
    found, verbs, header = [], (), []
    for line in stoker()("settings", "--markdown").out.splitlines():
        if line.startswith("## "):
            verbs = ("plan", "predict") if line == "## plan and predict" else (line[3:].strip(),)
        elif line.startswith("| flag"):
            header = cells(line)
        elif line.startswith("| `--") or line.startswith("| `-o"):
            row = dict(zip(header, cells(line)))
            flag = re.fullmatch(r"`(?:-\w, )?--(\[no-\])?([\w-]+)(?: (.+))?`", row["flag"])
            found.append(Row(flag.group(2), flag.group(3) or "", bool(flag.group(1)), (row["of"],) if row.get("of") else verbs,
                             row["meaning"], row["default"], tuple(re.findall(r"`--([\w-]+)`", row["also"]))))
    return tuple(found)


def rows_of(verb: str) -> list:
    return [row for row in rows() if verb in row.verbs]


@functools.cache
def names_of(verb: str) -> frozenset:
    """Every spelling of a verb's flags, without the two hyphens; those that verbs share as well."""
    shared = {"help", "help-all", "quiet", "color", "version", "no-json"}
    names = set(re.findall(r"--([a-z][\w-]*)", stoker()(verb, "--help-all").out)) | shared
    for row in rows_of(verb):
        names |= {row.name, *row.aliases}
        if row.pair:
            names |= {"no-" + name for name in (row.name, *row.aliases)}
    return frozenset(names)
