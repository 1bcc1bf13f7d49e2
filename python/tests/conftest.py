"""The fake device has to be prepared before anything imports torch."""

import sys

import pytest

try:
    from stoker import device

    DEVICE = device.prepare()
except Exception as error:  # no PyTorch
    DEVICE = None
    collect_ignore_glob = ["*"]
    print(f"skipping the tests: {error}", file=sys.stderr)


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


@pytest.fixture(autouse=True)
def stand_ins_go():
    """What stands in for a library serves one capture; the next test may import what looks for the library itself."""
    yield
    if "stoker.standins" in sys.modules:
        sys.modules["stoker.standins"].remove()
