"""The fake device has to be prepared before anything imports torch."""

import pathlib
import sys

import pytest

PYTHON = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PYTHON))

try:
    from stoker import device

    DEVICE = device.prepare()
except Exception as error:  # no PyTorch: only the tests that need none can run
    DEVICE = None
    collect_ignore = [path.name for path in pathlib.Path(__file__).parent.glob("test_*.py")]
    print(f"skipping captures: {error}", file=sys.stderr)


@pytest.fixture(scope="session")
def on_cuda():
    if DEVICE.type != "cuda":
        pytest.skip(f"needs CUDA's dispatch: {DEVICE.note}")
    return DEVICE


@pytest.fixture(scope="session")
def with_binary():
    """Skips where the stoker binary is not built: scripts/test sets STOKER_BINARY."""
    from stoker import binary

    try:
        return binary.find_binary()
    except binary.StokerError as error:
        pytest.skip(str(error))
