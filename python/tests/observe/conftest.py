"""What tests of a watch share."""

import subprocess

import pytest


@pytest.fixture
def sleeper():
    """A process that is no Python and does nothing."""
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()
