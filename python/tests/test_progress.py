"""The line that says what is done, and for how long yet."""

import io
import signal

import pytest

from stoker.capture_command import Progress
from stoker.progress import ProgressLine, span


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def own_timer():
    """The process's one timer, which a time limit on tests has set, is these tests' while they run."""
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.signal(signal.SIGALRM, before)


def test_times_read_as_people_say_them():
    assert [span(s) for s in (0.4, 59.4, 60, 80, 3600, 7500)] == ["0 s", "59 s", "1 min", "1 min 20 s", "1 h", "2 h 5 min"]


def test_where_there_is_no_terminal_a_line_comes_at_most_every_ten_seconds(clock):
    stream = io.StringIO()
    with ProgressLine("probing x", stream, clock) as line:
        for second in range(25):
            clock.now = 100 + second
            line("samples", left_s=25 - second)
    assert stream.getvalue() == ("stoker: probing x: samples, 10 s, about 15 s left\n"
                                 "stoker: probing x: samples, 20 s, about 5 s left\n")


def test_on_a_terminal_it_is_one_line_from_the_first_second_and_goes_away(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    with ProgressLine("capturing a_model_with_quite_a_long_name", stream, clock) as line:
        line("starting", left_s=50)
        assert stream.getvalue() == "\r\033[Kcapturing a_mo..., 0 s, about 50 s left"
        clock.now += 1
        signal.raise_signal(signal.SIGALRM)
        drawn = stream.getvalue()
        line.say("stoker: a note")
    assert drawn.endswith("\r\033[Kcapturing a_mo..., 1 s, about 49 s left")
    assert stream.getvalue() == drawn + "\r\033[Kstoker: a note\n"
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_timer_of_the_users_code_is_left_alone(clock):
    def handler(number, frame):
        raise AssertionError

    before = signal.signal(signal.SIGALRM, handler)
    try:
        stream = Terminal()
        with ProgressLine("x", stream, clock) as line:
            clock.now += 1
            line("reading", 0.25)
            assert stream.getvalue().endswith("\r\033[Kx: reading, 1 s, about 3 s left")
        assert signal.getsignal(signal.SIGALRM) is handler and stream.getvalue().endswith("\r\033[K")
    finally:
        signal.signal(signal.SIGALRM, before)


def test_runs_of_a_capture_tell_when_it_will_be_over(clock, monkeypatch):
    monkeypatch.setattr("stoker.capture_command.time.monotonic", clock)
    line = ProgressLine("capturing m", Terminal(), clock)
    progress = Progress(line)
    progress(0, 4, "batch=2")
    assert line.line() == "capturing m: run 1 of 4, batch=2, 0 s"  # its end is not known yet
    clock.now += 20
    progress(1, 4, "batch=3")
    assert line.line() == "capturing m: run 2 of 4, batch=3, 20 s, about 1 min left"
    clock.now += 4
    progress(2, 4, "batch=5")
    assert line.line() == "capturing m: run 3 of 4, batch=5, 24 s, about 8 s left"
