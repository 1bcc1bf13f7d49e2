"""A batch of the DataLoader that the script splits into parts (`x.chunk(4)`, slices of it) and accumulates over: a forecast's batch
is one part, and there are as many of them as the script's own run shows."""

from __future__ import annotations

import ast
import pathlib
from dataclasses import dataclass

from .. import sites
from ..world import Outcome


@dataclass(frozen=True)
class Parts:
    """How a step takes the loader's batch."""

    count: int  # backwards
    equal: bool  # they are one part, repeated with other data
    size: int | None  # the first size of the model's first argument
    batches: int  # of the loader, in a step
    site: sites.Site | None  # the loop within the step that the backward stands in

    @staticmethod
    def of(watcher, record, files: list) -> Parts:
        equal = record.backwards < 2 or record.equal_parts()
        return Parts(record.backwards, equal, record.batch, watcher.batches_of_step, _inner_loop(files))

    def many_alike(self) -> bool:
        """Whether a step accumulates over more of them than are recorded."""
        return self.equal and self.count > 2

    def may_be_many(self) -> bool:
        """Whether the run with the script's own batch may show more of them than this one has."""
        return self.site is not None and self.batches <= 1

    def are_of_one_batch(self, whole: int | None) -> bool:
        """Whether they make up the loader's batch, the last of them with what is left or without it: pieces of its sequences, and
        several views of its samples, do not."""
        if not (self.may_be_many() and self.equal and self.count > 1 and self.size and whole):
            return False
        return self.count in (whole // self.size, -(-whole // self.size))

    def are(self, size: int, count: int) -> bool:
        return self.equal and (self.size, self.count) == (size, count)

    def points(self, wanted: tuple) -> tuple:
        """Batches to capture at: none is larger than a part, which may be of one size whatever the loader's batch is."""
        size = self.size or 0
        return wanted if size >= wanted[-1] or size < 4 else (size // 2, size * 3 // 4, size)


def told(own: Outcome) -> str:
    """Makes one part the batch of what this run has found; the sentence that says so."""
    parts, whole, own.batch = own.parts, own.batch, own.parts.size
    for fact in own.facts:
        if fact.setting == "batch":
            fact.value, fact.words, fact.site = parts.size, f"batch {parts.size}, a part of the DataLoader's {whole}", parts.site
    rest = ", the last of them smaller" if parts.count * parts.size > whole else ""
    return (f"{parts.site}: a batch of the DataLoader ({whole}) is taken in {parts.count} parts{rest}, whose gradients are accumulated: "
            "--batch is the size of one part")


def _inner_loop(files: list) -> sites.Site | None:
    """The first loop that calls backward and leaves the optimizer's step to what stands around it."""
    for path in files:
        try:
            tree = ast.parse(pathlib.Path(path).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        helpers = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _calls(node, {"backward"})
                   and not _calls(node, {"step"})}
        for node in ast.walk(tree):
            if isinstance(node, (ast.For, ast.While)) and _calls(node, {"backward", *helpers}) and not _calls(node, {"step"}):
                return sites.Site(path, node.lineno)
    return None


def _calls(tree, names: set) -> bool:
    return any(isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in names for node in ast.walk(tree))
