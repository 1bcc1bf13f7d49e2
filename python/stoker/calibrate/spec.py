"""One thing to be measured: an ATen operator with its sizes, in the words of docs/reference/machine-file.md."""

from __future__ import annotations

from dataclasses import dataclass, field

FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class Spec:
    """`sizes` are what the rows file tells. `dims` are the operands' own, where several of them have the same sizes; of two
    specs that differ in `dims` alone the first is measured."""

    kind: str
    function: str
    sizes: tuple  # pairs (name, number), in the order of the kind's documentation; those of 0 are left out
    precision: str = "fp32"
    pass_: str = FORWARD
    warm: bool = True
    dims: tuple = field(default=(), compare=False)

    def size(self, name: str, absent: int = 0) -> int:
        return dict(self.sizes).get(name, absent)

    def key(self) -> tuple:
        """What tells a row from all others of one thread count."""
        return self.kind, self.function, tuple(sorted(self.sizes)), self.precision, self.pass_, self.warm


def spec(kind: str, function: str, *, precision: str = "fp32", pass_: str = FORWARD, warm: bool = True, dims=(), **sizes) -> Spec:
    return Spec(kind, function, tuple((name, int(number)) for name, number in sizes.items() if number), precision, pass_, warm,
                tuple(dims))


def row_key(row: dict) -> tuple:
    """What makes a row of the file that of a Spec with the same key."""
    return (row["kind"], row["function"], tuple(sorted(row["sizes"].items())), row["precision"], row["pass"], row["warm"])


def label(wanted: Spec) -> str:
    """"convolution batch=8 in_channels=64 ... forward": for people."""
    sizes = " ".join(f"{name}={number}" for name, number in wanted.sizes)
    return f"{wanted.function} {sizes} {wanted.pass_}{'' if wanted.warm else ' cold'}"
