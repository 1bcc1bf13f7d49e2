"""Writes the step file of docs/reference/step-file.md: interned, compact, the same bytes for the same capture."""

from __future__ import annotations

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import tempfile

from . import caches
from .affine import Merger, thaw
from .errors import CaptureError
from .polynomial import Fitter

SCHEMA_VERSION = [1, 4]


class _Interner:
    def __init__(self):
        self.items: list = []
        self._index: dict = {}

    def __call__(self, item) -> int:
        number = self._index.get(item)
        if number is None:
            number = self._index[item] = len(self.items)
            self.items.append(item)
        return number


def link_numbers(events: list) -> dict:
    """Autograd's sequence numbers that tie a forward operator to backward ones -> small numbers from 1."""
    forward = {e[3] for e in events if e[0] == "o" and not e[4] and e[3] >= 0}
    backward = {e[3] for e in events if e[0] == "o" and e[4] and e[3] >= 0}
    links: dict = {}
    for event in events:
        if event[0] == "o" and event[3] in forward and (event[3] in backward or event[1] == "stoker::attention"):
            links.setdefault(event[3], len(links) + 1)
    return links


class _Writer:
    def __init__(self, fitter: Fitter, merger: Merger):
        self.fitter, self.merger = fitter, merger
        self.types, self.operators, self.modules = _Interner(), _Interner(), _Interner()
        self.modules("")

    def _polynomial(self, frozen):
        return self.fitter.to_json(thaw(frozen))

    def _type(self, tensor) -> int:
        return self.types(tensor[:3])

    def _pairs(self, tensors) -> list:
        return [number for t in tensors for number in (self._type(t), t[3])]

    def _types_json(self) -> list:
        rows = []
        for dtype, shape, order in self.types.items:
            row = [dtype, [self._polynomial(size) for size in shape]]
            if order is not None:
                row.append(order if isinstance(order, str) else list(order))
            rows.append(row)
        return rows

    def _event(self, event, links, unlinked) -> list:
        if event[0] != "o":
            return list(event)
        _, name, module, sequence, _, inputs, outputs, attributes = event
        link = links.get(sequence, 0)
        if not link and name == "stoker::attention":
            link = unlinked()
        row = ["o", self.operators(name), self.modules(self.merger.first.modules[module]), link, self._pairs(inputs),
               self._pairs(outputs), attributes]
        while row and not row[-1]:
            row.pop()
        return row

    def body(self) -> dict:
        merger = self.merger
        events = merger.events()
        storages = merger.storages()
        links = link_numbers(events)
        counter = [len(links)]

        def unlinked():
            counter[0] += 1
            return counter[0]

        parameters = [self._parameter(row) for row in merger.named("parameters")]
        buffers = [{"name": n, "type": self._type(t), "storage": t[3]} for n, t in merger.named("buffers")]
        inputs = [{"name": n, "type": self._type(t), "storage": t[3]} for n, t in merger.named("inputs")]
        rows = [self._event(e, links, unlinked) for e in events]
        return {
            "strings": {"operators": self.operators.items, "modules": self.modules.items},
            "types": self._types_json(),
            "storages": [[self._polynomial(size), kind] for size, kind in storages],
            "parameters": parameters, "buffers": buffers, "inputs": inputs, "events": rows,
        }

    def _parameter(self, row) -> dict:
        name, tensor, requires_grad, gradient, group = row
        found = {"name": name, "type": self._type(tensor), "storage": tensor[3], "requires_grad": requires_grad}
        if gradient is not None:
            found["gradient"] = gradient
        found["group"] = 0 if group is None else group
        if group is None:
            found["updated"] = False
        return found


def _dimension(d) -> dict:
    row = {"name": d.name, "unit": d.unit, "degree": d.degree, "default": d.default, "captured": list(d.captured),
           "verified": [d.verified], "min": d.min}
    if d.max is not None:
        row["max"] = d.max
    return row


def today() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).date().isoformat()
    return datetime.date.today().isoformat()


def document(fitter: Fitter, raws: list, head: dict, provenance: dict, about: dict) -> dict:
    """The whole file as a dict. `head` has name, mode and precision; `about` sample, optimizer and training, or None."""
    body = _Writer(fitter, Merger(fitter, raws)).body()
    counted = {"dimensions": [_dimension(d) for d in fitter.dimensions]}
    counted.update({key: value for key, value in about.items() if value})
    counted["diagnostics"] = raws[0].notes
    counted.update(body)
    canonical = json.dumps(counted, sort_keys=True, separators=(",", ":")).encode()
    provenance = dict(provenance, date=today(), event_hash=hashlib.sha256(canonical).hexdigest())
    return {"format": "stoker-step", "schema_version": SCHEMA_VERSION, **head, "provenance": provenance, **counted}


def encode(doc: dict) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=9) as out:
        out.write(json.dumps(doc, separators=(",", ":")).encode())
    return buffer.getvalue()


def write(doc: dict, path: str) -> None:
    """Writes to `path` in one go: a reader sees the old file or the new one, never half of one."""
    target = pathlib.Path(path)
    try:
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(encode(doc))
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(part, 0o666 & ~umask)
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise CaptureError(f"cannot write {path}: {error.strerror}; choose another file with -o") from None
    caches.wrote(target)


def read(path: str) -> dict:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)
