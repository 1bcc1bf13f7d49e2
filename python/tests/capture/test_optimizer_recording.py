"""The recording that the C++ optimizer recipes are held beside is what this PyTorch does."""

import json
import pathlib
import subprocess
import sys

import pytest

from places import REPOSITORY

torch = pytest.importorskip("torch")

RECORDED = REPOSITORY / "src/lower/testdata/optimizers.json"
KNOWN_SINCE = (2, 13)  # older versions order a few temporaries otherwise, or lack Adafactor


def cases(path) -> dict:
    return {case["name"]: case for case in json.loads(pathlib.Path(path).read_text())["cases"]}


def test_this_pytorch_allocates_as_recorded(tmp_path):
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < KNOWN_SINCE:
        pytest.skip(f"recorded with PyTorch {KNOWN_SINCE[0]}.{KNOWN_SINCE[1]} and newer, this is {torch.__version__}")
    output = tmp_path / "optimizers.json"
    subprocess.run([sys.executable, str(REPOSITORY / "scripts/record-optimizers"), "--output", str(output)],
                   check=True, capture_output=True, timeout=300)
    recorded, now = cases(RECORDED), cases(output)
    missing = {name for name in set(recorded) - set(now) if not name.startswith("lion")}
    assert not missing
    changed = [name for name, case in now.items() if case != recorded.get(name)]
    assert not changed, f"PyTorch {torch.__version__} allocates otherwise: record anew and adapt src/lower/optimizer*"
