"""Turns operators.csv into the rows that `stoker fit` reads (docs/guide/fit.md): one column a size, operators that are one known kernel."""

import csv

from . import cases

FIRST = ("kind", "gpu", "precision", "pass", "time_us", "spread", "warm")


def rows_of(measured):
    """From rows of operators.csv. The case of an empty kernel becomes the row of the launch, which all other times contain."""
    found = []
    for row in measured:
        if row["status"] != "ok" or not row["time_us"]:
            continue
        common = {"gpu": row["gpu"], "time_us": row["time_us"], "spread": row["spread"]}
        if row["case"] == cases.key_of(cases.EMPTY_KERNEL):
            if row["pass"] == "forward":
                found.append({"kind": "launch", **common})
        elif row["kind"]:
            sizes = dict(pair.split("=") for pair in row["sizes"].split())
            found.append({"kind": row["kind"], "precision": row["precision"], "pass": row["pass"], "warm": row["warm"],
                          **common, **sizes})
    return found


def write(folder):
    """fit.csv beside operators.csv, made anew from all of its rows; how many it holds."""
    with open(folder / "operators.csv", newline="") as file:
        rows = rows_of(csv.DictReader(file))
    sizes = sorted({name for row in rows for name in row} - set(FIRST))
    with open(folder / "fit.csv", "w", newline="") as file:
        table = csv.DictWriter(file, (*FIRST, *sizes), restval="")
        table.writeheader()
        table.writerows(rows)
    return len(rows)
