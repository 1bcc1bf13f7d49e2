#!/usr/bin/env python3
"""Captures the models of models.py into this folder (needs PyTorch): NAME.PRECISION.KIND.step.gz."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "python"
KINDS = {"plain": ("", "train"), "checkpointed": ("_checkpointed", "train"), "inference": ("", "inference"),
         "compiled": ("", "train", "--compile")}


def capture(model: str, precision: str, kind: str) -> None:
    suffix, mode, *more = KINDS[kind]
    environment = {**os.environ, "PYTHONPATH": str(PYTHON), "SOURCE_DATE_EPOCH": "1764288000"}
    subprocess.run(
        [sys.executable, "-m", "stoker", "capture", f"models.py:{model}{suffix}", "--mode", mode,
         "--precision", precision, "-o", f"{model}.{precision}.{kind}.step.gz", *more],
        check=True, cwd=HERE, env=environment)


def main() -> None:
    for model in ("transformer", "convolutional"):
        for precision in ("fp32", "amp-bf16"):
            for kind in KINDS:
                capture(model, precision, kind)
    capture("smoothed", "bf16", "plain")


if __name__ == "__main__":
    main()
