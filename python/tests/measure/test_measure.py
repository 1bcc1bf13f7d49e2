"""The core of all measuring: children of both kinds, contention, the reference kernel."""

import os
import pathlib
import signal
import time

import pytest

pytest.importorskip("torch")

from places import SUPPORT  # noqa: E402
from stoker.measure import budget, contention, forked, fresh, leftovers, reference, signals  # noqa: E402


def child(kind, **more):
    return fresh.Child("measured_child", kind, folder=SUPPORT, **more)


def soon(seconds=60.0):
    return time.monotonic() + seconds


def state(pid):
    """"gone", or the letter of /proc."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def ended(pid, patience_s=20.0):
    until = soon(patience_s)
    while state(pid) not in ("gone", "Z") and time.monotonic() < until:
        time.sleep(0.02)
    return state(pid) in ("gone", "Z")


# -- new interpreters ------------------------------------------------------------------------------------------------------


def test_a_fresh_child_answers_one_message_after_another():
    with child("doubles") as one:
        for number in (1, 20):
            one.tell(number)
            assert one.hear(soon()) == {"twice": 2 * number}
        assert one.lives() and one.pid != os.getpid()
        pid = one.pid
    assert ended(pid)


def test_a_child_that_dies_tells_its_code_and_last_words():
    with child("dies") as one:
        one.tell({})
        with pytest.raises(fresh.Died):
            one.hear(soon())
        assert (one.code(), one.last_words()) == (7, "the last words")
        assert one.why() == "the process ended with exit code 7: the last words"
        with pytest.raises(fresh.Died):
            while True:  # the first may still fit into the pipe
                one.tell({})


def test_a_child_that_hangs_costs_its_time_and_is_ended_with_all_that_it_started():
    with leftovers.Warden() as warden, child("hangs", warden=warden) as one:
        helper = one.hear(soon())
        with pytest.raises(fresh.TimeUp):
            one.hear(soon(0.05))
        assert state(helper) not in ("gone", "Z")
    assert ended(helper) and one.code() == -signal.SIGKILL


# -- forked children -------------------------------------------------------------------------------------------------------


def test_work_in_a_child_comes_back_as_json():
    seen = []
    assert forked.in_child(lambda: {"pid": os.getpid(), "pair": (1, 2)}, 30, watch=lambda: seen.append(True))["pair"] == [1, 2]
    found = forked.in_child(lambda: 1 / 0, 30)
    assert found["error"] == "ZeroDivisionError: division by zero" and "Traceback" in found["trace"]
    assert forked.in_child(lambda: os._exit(3), 30) == {"error": "the process that ran it died"}
    assert forked.in_child(lambda: os.kill(os.getpid(), signal.SIGKILL), 30) == {"error": "the process that ran it died"}
    assert forked.in_child(lambda: time.sleep(60), 0.2, watch=lambda: seen.append(True)) == {"error": "did not end within 0 s"}
    assert seen, "watched meanwhile"


def test_what_a_child_sends_before_it_dies_is_kept():
    def work(send):
        print("said")
        send("part", 1)
        send("part", 2)
        os._exit(5)

    with leftovers.Warden() as warden:
        outcome = forked.Child(work, warden, daemon=False).collect(soon())
    assert outcome.all("part") == [1, 2] and outcome.last("part") == 2 and (outcome.end, outcome.code) == ("exit", 5)
    assert outcome.why() == "it ended itself with exit code 5"


def test_a_warden_removes_its_folder_and_the_groups_that_it_was_told_of():
    warden = leftovers.Warden("stoker-test-")
    one = child("hangs", warden=warden)
    helper = one.hear(soon())
    folder = warden.folder
    assert os.path.isdir(folder) and os.path.basename(folder).startswith("stoker-test-")
    warden.close()  # as when this process had died, the child still on its books
    assert not os.path.exists(folder) and ended(helper)
    one.close()


# -- contention and speed --------------------------------------------------------------------------------------------------


def test_shares_of_others_go_on_from_an_earlier_run():
    load = contention.Load({"seconds": 1e6, "foreign_share": 0.25, "steal_share": 0.125})
    load.lap()
    shares = load.shares()
    assert shares["foreign_share"] == pytest.approx(0.25, abs=1e-3) and shares["steal_share"] == pytest.approx(0.125, abs=1e-3)
    assert shares["seconds"] >= 1e6


def test_contention_is_said_in_words():
    assert contention.objections(contention.MAX_OTHERS, contention.MAX_STEAL) == []
    assert contention.objections(0.1, 0.05) == ["other processes used 10.0 % of the cores", "the hypervisor took 5.0 %"]


@pytest.mark.parametrize("work", [reference.LOADING, reference.SAMPLES, reference.TRAINING, reference.OPERATORS])
def test_every_work_of_the_reference_kernel_takes_time(work):
    kernel = reference.Kernel(work, threads=2)
    assert kernel.milliseconds(3) > 0


def test_a_kernel_waits_for_its_speed_and_gives_up(monkeypatch):
    kernel = reference.Kernel(reference.Work(loops=10))
    times = iter([5.0] * 3 + [1.0] * 3)
    monkeypatch.setattr(kernel, "once", lambda: next(times))
    assert kernel.settle(2.0, patience_s=30) is True and list(times) == []
    monkeypatch.setattr(kernel, "once", lambda: 5.0)
    assert kernel.settle(2.0, patience_s=0.0) is False


# -- signals and time ------------------------------------------------------------------------------------------------------


def test_an_interrupt_is_counted_and_raised_again():
    before = signals.interrupts()
    signals.check(before)
    with pytest.raises(KeyboardInterrupt):
        signals.interrupt()
    with pytest.raises(KeyboardInterrupt):
        signals.check(before)


def test_a_budget_counts_from_the_start_of_the_process():
    assert budget.process_start() < time.monotonic()
    given = budget.Budget(1000.0)
    assert given.left() + given.spent() == pytest.approx(970.0, abs=0.5)
