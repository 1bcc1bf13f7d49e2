"""Exact polynomials with integer coefficients through values on a grid of sizes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product


@dataclass(frozen=True)
class Dimension:
    """A named dimension. Sizes are multiples of `unit`; polynomials are in size / unit.

    `captured` sizes are fitted exactly (degree + 1 of them), `verified` ones are only checked.
    """

    name: str
    default: int
    degree: int = 1
    unit: int = 1
    min: int = 1
    max: int | None = None
    captured: tuple = ()
    verified: int | None = None


class NotPolynomial(Exception):
    """The values follow no polynomial with integer coefficients of the degrees asked for."""


def _interpolate(points: list, values: list) -> list:
    """Coefficients (constant first) of the polynomial through (points[i], values[i]); exact."""
    size = len(points)
    rows = [[Fraction(p) ** k for k in range(size)] + [Fraction(v)] for p, v in zip(points, values)]
    for column in range(size):
        pivot = rows[column][column]
        rows[column] = [x / pivot for x in rows[column]]
        for r in range(size):
            if r != column and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[column])]
    return [row[-1] for row in rows]


class Fitter:
    """Fits values at the grid of captured sizes and checks them at one more; equal values are fitted once."""

    def __init__(self, dimensions: list):
        self.dimensions = dimensions
        self._points = [[size // d.unit for size in d.captured] for d in dimensions]
        self._memo: dict = {}

    def grid(self) -> list:
        """The sizes to capture at: all combinations, then the verified one. Dicts from name to size."""
        names = [d.name for d in self.dimensions]
        points = [dict(zip(names, sizes)) for sizes in product(*(d.captured for d in self.dimensions))]
        return points + [{d.name: d.verified for d in self.dimensions}]

    def fit(self, values: tuple):
        """An integer, or a dict {exponents: coefficient}. `values` are in the order of grid()."""
        first = values[0]
        if all(v == first for v in values):
            return first
        known = self._memo.get(values)
        if known is None:
            known = self._memo[values] = self._fit(values)
        if isinstance(known, Exception):
            raise known
        return known

    def _fit(self, values):
        coefficients = self._solve(list(values[:-1]), 0)
        if any(c.denominator != 1 for c in coefficients.values()):
            return NotPolynomial()
        found = {e: int(c) for e, c in coefficients.items() if c}
        if evaluate(found, [d.verified // d.unit for d in self.dimensions]) != values[-1]:
            return NotPolynomial()
        return found

    def _solve(self, values: list, depth: int) -> dict:
        if depth == len(self.dimensions):
            return {(): Fraction(values[0])}
        points = self._points[depth]
        share = len(values) // len(points)
        parts = [self._solve(values[i * share:(i + 1) * share], depth + 1) for i in range(len(points))]
        result = {}
        for inner in set().union(*parts):
            for power, c in enumerate(_interpolate(points, [p.get(inner, Fraction(0)) for p in parts])):
                monomial = (power, *inner)
                result[monomial] = c
        return result

    def to_json(self, polynomial):
        """The step file's form: an integer or an object from monomial to coefficient."""
        if not isinstance(polynomial, dict):
            return polynomial
        if not polynomial:
            return 0
        return {self._monomial(e): polynomial[e] for e in sorted(polynomial)}

    def _monomial(self, exponents) -> str:
        return "*".join(d.name if power == 1 else f"{d.name}^{power}"
                        for d, power in zip(self.dimensions, exponents) if power)


def evaluate(polynomial, point: list) -> int:
    if not isinstance(polynomial, dict):
        return polynomial
    total = 0
    for exponents, coefficient in polynomial.items():
        for base, power in zip(point, exponents):
            coefficient *= base ** power
        total += coefficient
    return total
