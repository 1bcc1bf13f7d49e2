"""Controllers and runners die at random instants; nothing is lost and nothing runs twice (torture.py has the long form)."""

import pathlib
import sys

import pytest

from stoker_binary import STOKER

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torture  # noqa: E402


@pytest.mark.parametrize("what", ["controller", "both"])
def test_nothing_is_lost_and_nothing_runs_twice(what):
    killed, lost, trials, wrong = torture.run(str(STOKER), 8, 25, what, seed=3)
    assert wrong == []
    assert sum(killed.values()) >= 8
    assert trials >= 25
    assert what == "both" or lost == 0
