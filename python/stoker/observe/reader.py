"""Reads an observation file: strict about every line, honest about those that are damaged."""

from __future__ import annotations

import json
import os

from . import layout
from .layout import ObservationError
from .recorded import Damage, Recorded
from .summary import Summary, summarise

LARGEST = 2**63 - 1
LONGEST_LINE = 1 << 20  # characters; a row has some 150
REQUIRED = layout.columns(layout.PHASES, on_device=False)


class Observation(Recorded):
    """A file's content, with what it says."""

    def summary(self) -> Summary:
        return summarise(self)


class _Refused(Exception):
    """Why a line is damaged."""


def read_observation(path: str | os.PathLike) -> Observation:
    """Reads a file that an Observer wrote. Damaged lines are left out and listed in `damaged`.

    Raises ObservationError if there is no such file, or it is no observation, or of a newer major version.
    """
    file = str(path)
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except FileNotFoundError:
        raise ObservationError(f"cannot read {file}: no such file; check the path") from None
    except OSError as error:
        raise ObservationError(f"cannot read {file}: {error.strerror}") from None
    lines = data.split(b"\n")
    whole = lines.pop() == b""
    if not whole:
        lines.append(data.rpartition(b"\n")[2])
    if not data.strip():
        raise ObservationError(f"{file} is empty: the training ended before its first step was over, or the file is no "
                               "observation")
    found = Observation(file, _header(file, lines[0]))
    for number, line in enumerate(lines[1:], 2):
        last = number == len(lines)
        try:
            _take(found, line)
        except _Refused as refused:
            if last and not whole:
                found.truncated = True
            else:
                found.damaged.append(Damage(file, number, str(refused)))
    _check_blocks(found, len(lines))
    return found


def _parse(line: bytes):
    if len(line) > LONGEST_LINE:
        raise _Refused(f"a line of {len(line):,} bytes")
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise _Refused("not UTF-8") from None
    except (ValueError, RecursionError):
        raise _Refused("not JSON") from None


def _no_constant(name: str):
    raise ValueError(name)


def _header(file: str, line: bytes) -> dict:
    try:
        header = _parse(line)
    except _Refused as refused:
        raise ObservationError(f"{file}:1: {refused}: the first line has to be a {layout.FORMAT} file's header") from None
    if not isinstance(header, dict) or header.get("format") != layout.FORMAT:
        named = header.get("format") if isinstance(header, dict) else None
        raise ObservationError(f"{file}:1: no {layout.FORMAT} file (format is {named!r})")
    version = header.get("schema_version")
    if not isinstance(version, list) or len(version) != 2 or not all(_whole(part) for part in version):
        raise ObservationError(f"{file}:1: schema_version has to be [major, minor]")
    if version[0] != layout.SCHEMA_VERSION[0]:
        raise ObservationError(f"{file}:1: schema_version is {version[0]}.{version[1]} and this stoker reads "
                               f"{layout.SCHEMA_VERSION[0]}.x: use the stoker that wrote it, or a newer one")
    columns = header.get("columns")
    if (not isinstance(columns, list) or not all(isinstance(name, str) for name in columns)
            or len(set(columns)) != len(columns)):
        raise ObservationError(f"{file}:1: columns has to be a list of different names")
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise ObservationError(f"{file}:1: columns lacks {', '.join(missing)}")
    if header.get("timing") not in ("host", "device"):
        raise ObservationError(f"{file}:1: timing has to be host or device")
    if header["timing"] == "device" and not {"device_gap_ns", "device_total_ns"} <= set(columns):
        raise ObservationError(f"{file}:1: timing is device and columns lacks device_gap_ns or device_total_ns")
    for name, kinds in (("provenance", dict), ("model", (dict, type(None))), ("precision", (str, type(None))),
                        ("batch", (int, type(None))), ("rank", int), ("ranks", int)):
        if not isinstance(header.get(name), kinds):
            raise ObservationError(f"{file}:1: {name} is missing or of another type")
    return header


def _take(found: Observation, line: bytes) -> None:
    value = _parse(line)
    if isinstance(value, list):
        row = _row(value, found.header["columns"], found.rows)
        found.rows.append(row)
    elif not isinstance(value, dict) or not value:
        raise _Refused("neither a row nor an object")
    elif "block" in value:
        _numbers(value, ("block", "rows", "lost", "clock_ns", "write_ns"))
        found.blocks.append({**value, "before": len(found.rows)})
    elif "memory" in value:
        found.memory.append(_inner(value, "memory", ("step",)))
    elif "exception" in value:
        inner = _inner(value, "exception", ("step",))
        if not isinstance(inner.get("type"), str):
            raise _Refused("exception.type is no text")
        found.exceptions.append(inner)
    elif "end" in value:
        if found.end is not None:
            raise _Refused("a second end")
        end = _inner(value, "end", ("steps", "lost", "write_ns"))
        notes = end.setdefault("notes", {})
        if not isinstance(notes, dict) or not all(_whole(count) for count in notes.values()):
            raise _Refused("end.notes is no object of counts")
        found.end = end
    # Other objects: a later minor version's.


def _inner(value: dict, key: str, numbers: tuple) -> dict:
    inner = value[key]
    if not isinstance(inner, dict):
        raise _Refused(f"{key} is no object")
    _numbers(inner, numbers)
    for name, number in inner.items():
        if name not in ("type", "notes") and number is not None and not _whole(number):
            raise _Refused(f"{key}.{name} is no whole number")
    return inner


def _numbers(value: dict, names: tuple) -> None:
    for name in names:
        if not _whole(value.get(name)):
            raise _Refused(f"{name} is missing or no whole number of 0 or more")


def _whole(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _row(values: list, columns: list, before: list) -> dict:
    if len(values) != len(columns):
        raise _Refused(f"a row of {len(values)} values under {len(columns)} columns")
    row = dict(zip(columns, values))
    if row["kind"] not in layout.KINDS or row["end"] not in layout.ENDS:
        raise _Refused(f"kind {row['kind']!r} or end {row['end']!r} is unknown")
    broken_clock = row["end"] == layout.CLOCK
    for name, value in row.items():
        if name in ("kind", "end"):
            continue
        if value is None and name not in REQUIRED:  # the device's times, and a later version's columns
            continue
        if broken_clock and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST:
            continue
        if not _whole(value):
            raise _Refused(f"{name} is {value!r}: a whole number of 0 or more is needed")
    if before and row["step"] <= before[-1]["step"]:
        raise _Refused(f"step {row['step']} comes after step {before[-1]['step']}")
    if not broken_clock:
        spent = sum(row[name] for name in columns if name.endswith("_ns") and not name.startswith("device_")
                    and name not in ("start_ns", "gap_ns", "total_ns"))
        if spent != row["gap_ns"] + row["total_ns"]:
            raise _Refused(f"the phases add up to {spent} ns, gap and step to {row['gap_ns'] + row['total_ns']} ns")
    return row


def _check_blocks(found: Observation, lines: int) -> None:
    """Rows that a block announced and that are not there."""
    borders = [block["before"] for block in found.blocks[1:]] + [len(found.rows)]
    missing = sum(max(0, block["rows"] - (after - block["before"])) for block, after in zip(found.blocks, borders))
    unread = len(found.damaged) + found.truncated
    if missing > unread and not (found.end is None and borders and _last_block_short(found, borders)):
        why = f"{missing - unread} rows that their blocks announce are missing"
        found.damaged.append(Damage(found.file, lines, why))
    elif missing > 0 and found.end is None:
        found.truncated = True


def _last_block_short(found: Observation, borders: list) -> bool:
    """Only the last block lacks rows: it was cut off while it was written."""
    short = [block for block, after in zip(found.blocks, borders) if block["rows"] > after - block["before"]]
    return short == [found.blocks[-1]]
