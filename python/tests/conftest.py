"""The fake device has to be prepared before anything imports torch. Which tests run by themselves is in places.ALONE."""

import signal
import sys

import pytest

from places import ALONE, TESTS

try:
    from stoker import device

    DEVICE = device.prepare()
except Exception as error:  # no PyTorch
    DEVICE = None
    collect_ignore_glob = ["*"]
    print(f"skipping the tests: {error}", file=sys.stderr)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts what runs in the background deaf to Ctrl-C; the programs under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

CRASHED = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[CRASHED] = []
    gone = [file for file in ALONE if not (TESTS / file).exists()]
    if gone:
        raise pytest.UsageError(f"places.ALONE names files that are not there: {', '.join(gone)}")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).as_posix() in ALONE:
            item.add_marker("alone")


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem, report, sched):
    """A process of pytest-xdist died in a test: which others it would have run is not sure, so that nothing is tried again."""
    sched.config.stash[CRASHED].append(crashitem)


def pytest_sessionfinish(session):
    if session.config.stash[CRASHED]:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


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
