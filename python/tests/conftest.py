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
    collect_ignore = ["test_attention.py", "test_cli.py", "test_errors.py", "test_one_step.py", "test_precision.py",
                      "test_recurrent.py", "test_sizes.py", "test_transformers.py", "test_torchvision.py"]
    print(f"skipping captures: {error}", file=sys.stderr)


@pytest.fixture(scope="session")
def on_cuda():
    if DEVICE.type != "cuda":
        pytest.skip(f"needs CUDA's dispatch: {DEVICE.note}")
    return DEVICE
