"""The loop's side of an Observer: steps, phases, batches, and every way to use them wrongly."""

import threading

import pytest
import torch

import stoker
from observing import Clock, observer, read


def test_a_step_with_phases_is_split_exactly(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock)
    for _ in recorder.batches([torch.zeros(32, 3), torch.zeros(32, 3)]):
        with recorder.step():
            clock.ms(1)
            with recorder.phase("h2d"):
                clock.ms(2)
            with recorder.phase("forward"):
                clock.ms(4)
            with recorder.phase("backward"):
                clock.ms(8)
            with recorder.phase("optimizer"):
                clock.ms(16)
        clock.ms(32)
    first, second = read(recorder).rows
    assert second["gap_ns"] == 32_000_000 and second["total_ns"] == 31_000_000
    assert [second[f"{name}_ns"] for name in ("h2d", "forward", "backward", "optimizer")] == [2e6, 4e6, 8e6, 16e6]
    assert second["other_ns"] == 33_000_000 and second["loss_ns"] == 0
    assert (first["step"], second["step"], first["epoch"], second["epoch"]) == (0, 1, 1, 1)
    assert first["samples"] == 32 and first["forwards"] == first["backwards"] == first["optimizer_steps"] == 1


def test_waiting_for_the_loader_is_charged_to_the_step_that_it_delays(tmp_path):
    clock = Clock()

    def loader():
        for milliseconds in (50, 5):
            clock.ms(milliseconds)
            yield torch.zeros(4)

    recorder = observer(tmp_path, clock=clock)
    for _ in recorder.batches(loader()):
        with recorder.step():
            clock.ms(1)
    first, second = read(recorder).rows
    assert (first["wait_ns"], first["gap_ns"]) == (50_000_000, 50_000_000)
    assert (second["wait_ns"], second["gap_ns"], second["total_ns"]) == (5_000_000, 5_000_000, 1_000_000)


def test_an_inner_phase_interrupts_the_outer_one(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock, phases=["ema"])
    with recorder.step():
        with recorder.phase("optimizer"):
            clock.ms(3)
            with recorder.phase("ema"):
                clock.ms(5)
            clock.ms(1)
    row, = read(recorder).rows
    assert row["optimizer_ns"] == 4_000_000 and row["ema_ns"] == 5_000_000


def test_marks_for_loops_without_blocks(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock)
    recorder.begin_step()
    recorder.mark("forward")
    clock.ms(2)
    recorder.mark("backward")
    clock.ms(3)
    recorder.mark(None)
    clock.ms(1)
    recorder.end_step()
    row, = read(recorder).rows
    assert (row["forward_ns"], row["backward_ns"], row["other_ns"]) == (2_000_000, 3_000_000, 1_000_000)


def test_observe_step_needs_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        with stoker.observe_step(batch=16) as step:
            with step.phase("forward"):
                pass
    from stoker.observe.observer import _by_path

    found = read(_by_path.pop(None))
    assert found.file == "stoker.obs.jsonl"
    assert [row["samples"] for row in found.rows] == [16, 16, 16]


def test_the_environment_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("STOKER_OBSERVATION", str(tmp_path / "named.jsonl"))
    recorder = stoker.Observer(device="cpu")
    with recorder.step():
        pass
    assert read(recorder).file == str(tmp_path / "named.jsonl")


def test_an_exception_passes_through_and_the_step_counts_as_aborted(tmp_path):
    recorder = observer(tmp_path)
    with pytest.raises(torch.OutOfMemoryError):
        with recorder.step():
            with recorder.phase("forward"):
                raise torch.OutOfMemoryError("too much")
    with recorder.step():
        pass
    found = read(recorder)
    assert [row["end"] for row in found.rows] == ["exception", "ok"]
    assert found.exceptions == [{"step": 0, "type": "OutOfMemoryError"}]
    assert found.rows[1]["forward_ns"] == 0, "a phase that an exception left does not reach into the next step"


def test_a_nested_step_counts_as_part_of_the_outer_one(tmp_path):
    recorder = observer(tmp_path)
    with recorder.step():
        with recorder.step():
            pass
        with recorder.phase("forward"):
            pass
    found = read(recorder)
    assert len(found.rows) == 1 and found.end["notes"] == {"nested_steps": 1}
    assert found.rows[0]["end"] == "ok" and found.rows[0]["forwards"] == 1


def test_a_step_that_is_never_left_is_marked(tmp_path):
    recorder = observer(tmp_path)
    for _ in range(3):
        step = recorder.step()
        step.__enter__()
    del step
    with recorder.step():
        pass
    found = read(recorder)
    assert [row["end"] for row in found.rows] == ["unclosed"] * 3 + ["ok"]
    assert found.end["notes"] == {"unclosed_steps": 3}


def test_closing_within_a_step_keeps_it_as_unclosed(tmp_path):
    recorder = observer(tmp_path)
    with recorder.step():
        recorder.close()
    assert [row["end"] for row in stoker.read_observation(recorder.path).rows] == ["unclosed"]


def test_steps_after_close_are_not_recorded_and_that_is_said_once(tmp_path, capsys):
    recorder = observer(tmp_path)
    with recorder.step():
        pass
    recorder.close()
    for batch in recorder.batches([1, 2]):
        with recorder.step(), recorder.phase("forward"):
            assert batch in (1, 2)
    assert len(stoker.read_observation(recorder.path).rows) == 1
    assert capsys.readouterr().err.count("is closed") == 1


def test_an_observer_as_a_block_closes_itself(tmp_path):
    with pytest.raises(KeyError):
        with observer(tmp_path) as recorder:
            recorder.begin_step()
            raise KeyError("x")
    found = stoker.read_observation(recorder.path)
    assert found.rows[0]["end"] == "exception" and found.end["steps"] == 1


def test_other_threads_do_not_disturb_the_steps(tmp_path):
    recorder = observer(tmp_path)

    def elsewhere():
        with recorder.step(), recorder.phase("forward"):
            pass

    with recorder.step():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    found = read(recorder)
    assert len(found.rows) == 1 and found.rows[0]["forward_ns"] == 0
    assert found.end["notes"]["other_thread"] == 2


def test_a_clock_that_goes_back_marks_the_step(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock)
    with recorder.step():
        clock.ms(5)
    with recorder.step():
        clock.ms(-3)
    with recorder.step():
        clock.ms(5)
    found = read(recorder)
    assert [row["end"] for row in found.rows] == ["ok", "clock", "ok"] and not found.damaged
    assert found.rows[1]["total_ns"] == -3_000_000


def test_validation_steps_are_marked(tmp_path):
    recorder = observer(tmp_path)
    with recorder.step():
        pass
    with torch.no_grad():
        with recorder.step():
            pass
    with recorder.step(validation=True):
        pass
    for _ in recorder.batches([1], validation=True):
        with recorder.step():
            pass
    with recorder.step():
        pass
    found = read(recorder)
    assert [row["kind"] for row in found.rows] == ["train", "validation", "validation", "validation", "train"]
    assert found.rows[-1]["epoch"] == 0, "a pass over validation data is no epoch"


def test_batches_behave_like_the_loader(tmp_path):
    recorder = observer(tmp_path)
    assert len(recorder.batches([1, 2, 3])) == 3
    assert list(recorder.batches([1, 2, 3])) == [1, 2, 3]
    with pytest.raises(TypeError):
        len(recorder.batches(iter([1])))

    def fails():
        yield 1
        raise OSError("no such picture")

    with pytest.raises(OSError, match="picture"):
        list(recorder.batches(fails()))
    recorder.close()


@pytest.mark.parametrize("batch, size", [
    (torch.zeros(7, 2), 7), ((torch.zeros(5, 2), torch.zeros(5)), 5), ({"ids": torch.zeros(3, 9)}, 3),
    ([None, torch.zeros(2)], 2), (torch.tensor(1.0), None), ("words", None), (([torch.zeros(3, 8, 8)],), None), (None, None)])
def test_the_batch_size_is_seen_where_it_can_be(batch, size):
    from stoker.observe.loops import leading_size

    assert leading_size(batch) == size


@pytest.mark.parametrize("options, words", [
    ({"batch": 0}, "batch=0"), ({"batch": True}, "batch=True"), ({"phases": ["forward"]}, "name of its own"),
    ({"phases": ["a b"]}, "identifier"), ({"phases": ["x", "x"]}, "name of its own")])
def test_arguments_that_cannot_be_meant(tmp_path, options, words):
    with pytest.raises(stoker.ObservationError, match=words):
        observer(tmp_path, **options)


def test_an_unknown_phase_names_the_known_ones(tmp_path):
    recorder = observer(tmp_path)
    with pytest.raises(stoker.ObservationError, match="no phase 'fwd'.*forward.*phases="):
        recorder.phase("fwd")
    recorder.close()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(stoker.ObservationError, match="no folder"):
        stoker.Observer(tmp_path / "none" / "run.obs.jsonl")
    with pytest.raises(stoker.ObservationError, match="it is a folder"):
        stoker.Observer(tmp_path)


def test_a_fault_while_writing_never_reaches_training(tmp_path, monkeypatch, capsys):
    from stoker.observe import facts

    monkeypatch.setattr(facts, "provenance", lambda device: 1 / 0)
    recorder = observer(tmp_path)
    for _ in range(3):
        with recorder.step(), recorder.phase("forward"):
            pass
    recorder.close()
    assert capsys.readouterr().err.count("ZeroDivisionError") == 1 and not list(tmp_path.iterdir())
