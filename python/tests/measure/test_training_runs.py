"""Real training steps for the validation of forecasts: what is trained, the rows file, every way to fail, nothing left behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest

torch = pytest.importorskip("torch")

import training_models  # noqa: E402
from observing import Clock  # noqa: E402
from places import PYTHON, SUPPORT  # noqa: E402
from stoker import Observer, cli  # noqa: E402
from stoker.errors import CaptureError  # noqa: E402
from stoker.measure import nvidia, reference  # noqa: E402
from stoker.training_runs import child, facts, figures, job, judge, rows, runner, values  # noqa: E402

MODELS = SUPPORT / "training_models.py"


def case(function, **more):
    return {"spec": f"{MODELS}:{function.__name__}", "device": "cpu", "batch": 4, "precision": "fp32", **more}


def trained(function, tmp_path, steps=2, **more):
    """A job after a few steps in this process."""
    made = job.Job(case(function, **more), function)
    with Observer(tmp_path / "steps.obs.jsonl", device="cpu") as observer:
        for _ in range(steps):
            with observer.step():
                made.step(observer)
    return made


def run(*arguments, **environment):
    """`training-runs` in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "stoker", "training-runs", *specs_of(arguments)], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(PYTHON), **environment},
                            preexec_fn=_interruptible)


def _interruptible():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # who is started in the background ignores it, and so would the child


def specs_of(arguments):
    """Specs in place of NAME and NAME@BATCHES."""
    return [f"{MODELS}:{a}" if hasattr(training_models, str(a).partition("@")[0]) else str(a) for a in arguments]


@pytest.fixture
def finished(capfd):
    """(exit code, what it printed) of the command. It runs in this process, which has PyTorch already; what it measures has
    processes of its own in any case."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threads = torch.get_num_threads()

    def run_here(*arguments):
        try:
            code = cli.main(["training-runs", *specs_of(arguments)])
        finally:
            torch.set_num_threads(threads)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        captured = capfd.readouterr()
        return code, captured.out + captured.err

    return run_here


BRIEF = ("--device", "cpu", "--threads", "1", "--steps", "5", "--repetitions", "1", "--attempts", "1", "--budget", "400s")


# -- inputs ------------------------------------------------------------------------------------------------------------


def test_whole_numbers_are_drawn_from_what_they_are_looked_up_in(tmp_path):
    made = trained(training_models.words, tmp_path)
    first, second = made.module.seen
    assert not first[0].any(), "zeros are valid for any table, until it is known"
    for tensor, limit in zip(second, (training_models.WORDS, 3, training_models.WORDS)):
        assert tensor.min() >= 0 and tensor.max() < limit and len(tensor.unique()) > min(limit, 20) // 2
    assert made.lookups is None, "from then on nothing watches"


def test_numbers_that_somebody_chose_are_kept(tmp_path):
    def chosen(batch=4):
        module, inputs = training_models.words(batch, 6)
        inputs["ids"] = torch.arange(batch * 6).view(batch, 6)
        return module, inputs

    made = trained(chosen, tmp_path)
    assert torch.equal(made.module.seen[1][0], torch.arange(24).view(4, 6))


def test_memory_that_nobody_wrote_becomes_values_that_can_be_trained_on():
    garbage = torch.tensor([[-7, 1 << 60]])
    assert not values.usable(garbage) and not values.filled(garbage.clone()).any()
    for dtype in (torch.int8, torch.int16, torch.int32, torch.uint8):
        assert values.usable(torch.tensor([3, 0], dtype=dtype)) and not values.usable(torch.zeros(2, dtype=dtype))
    floats = values.filled(torch.full((1000,), float("nan")))
    assert floats.min() >= 0 and floats.max() < 1
    assert values.filled(torch.tensor([True, False])).tolist() == [True, False]


def test_a_batch_is_made_of_an_examples_rows_where_the_function_takes_none(tmp_path):
    made = trained(training_models.without_batch, tmp_path, batch=15)
    assert made.output.shape == (15, 3) and made.optimizer_told() == {
        "name": "adamw", "lr": 1e-4, "weight_decay": 0.01, "amsgrad": False}
    assert values.resized(torch.tensor([3, 1, 2]), 5).tolist() == [3, 1, 2, 3, 1]


def test_weights_are_initialised_and_steps_change_them(tmp_path):
    made = trained(training_models.tiny, tmp_path, steps=1, optimizer="adam")
    weight = made.module[0].weight.detach().clone()
    assert 0.1 < float(made.loss.detach()) < 10 and type(made.optimizer).__name__ == "Adam" and 0 < weight.std() < 1
    with Observer(tmp_path / "more.obs.jsonl", device="cpu") as observer, observer.step():
        made.step(observer)
    assert 0 < (made.module[0].weight - weight).abs().max() < 1e-5, "little: one batch is not to be learnt by heart"


@pytest.mark.parametrize("precision, dtype", [("bf16", torch.bfloat16), ("amp-bf16", torch.float32)])
def test_precisions_are_those_of_a_capture(tmp_path, precision, dtype):
    made = trained(training_models.tiny, tmp_path, precision=precision)
    assert next(made.module.parameters()).dtype is dtype and made.output.dtype is torch.bfloat16


def test_an_optimizer_that_evaluates_the_loss_itself_is_refused():
    with pytest.raises(CaptureError, match="LBFGS evaluates the loss within its step.*stoker validate train.py"):
        job.Job(case(training_models.by_closure), training_models.by_closure)
    assert job.Job(case(training_models.by_closure, optimizer="adam"), training_models.by_closure).optimizer_told()["name"] == "adam"


def test_batches_of_the_users_loader_are_split_into_inputs_and_targets(tmp_path):
    def trained_on(loader):
        made = job.Job(case(training_models.tiny, data="train.py:loader"), training_models.tiny, loader)
        with Observer(tmp_path / "loader.obs.jsonl", device="cpu") as observer:
            for _ in range(7):  # more than an epoch
                with observer.step():
                    made.step(observer)
        return made

    made = trained_on(training_models.loader())
    assert made.source.current[0][0].shape == (4, 16) and made.source.current[2][0].dtype is torch.int64
    with pytest.raises(CaptureError, match="the loader's batches have none beside"):
        trained_on([torch.rand(4, 16)])
    with pytest.raises(CaptureError, match="are dicts and the model's inputs have no names"):
        trained_on([{"x": torch.rand(4, 16)}])
    with pytest.raises(CaptureError, match="has no batches"):
        trained_on([])


# -- figures and the rule ------------------------------------------------------------------------------------------------


def test_a_recording_becomes_figures_without_its_warm_up(tmp_path):
    clock, path = Clock(), tmp_path / "run.obs.jsonl"
    with Observer(path, device="cpu", clock=clock) as observer:
        for step in range(13):
            with observer.step():
                for phase, ms in (("forward", 2), ("backward", 5), ("optimizer", 1)):
                    with observer.phase(phase):
                        clock.ms(ms * (100 if step < 3 else 1))
                clock.ms(0.5)
    row = figures.of(str(path), {"warm_up": 3, "steps": 10, "resident_peak_bytes": 7})
    assert row["step_ms"] == 8.5 and row["step_ms_p95"] == 8.5 and row["drift"] == 0 and row["clock"] == "host"
    assert row["phases"] == {"forward_ms": 2, "loss_ms": 0, "backward_ms": 5, "optimizer_ms": 1, "h2d_ms": 0, "data_ms": 0,
                             "other_ms": 0.5}
    assert row["resident_peak_bytes"] == 7 and row["steps"] == 10


def test_the_rule_is_what_is_applied():
    fine = {"foreign_share": 0.02, "steal_share": 0.01, "speed": 0.8, "drift": -0.09}
    assert judge.objections(fine, False) == []
    bad = {"foreign_share": 0.04, "steal_share": 0.03, "speed": 0.7, "drift": 0.11}
    assert len(judge.objections(bad, True)) == 5

    rows = [{"foreign_share": 0, "steal_share": 0, "drift": 0, "others_on_gpu": False, "reference_ms": ms} for ms in (4.0, 3.0, 2.0)]
    judge.judge({"reference_ms": 2.0, "runs": [{"repetitions": rows}]})
    assert [r["good"] for r in rows] == [False, False, True], "a machine that was slow at the beginning was slow then, not fast later"
    assert rows[0]["speed"] == 0.5 and "0.500 of its best" in rows[0]["why"]

    def measured(*steps, status="ok"):
        return {"status": status, "repetitions": [{"step_ms": abs(s), "good": s > 0} for s in steps]}

    assert judge.settled(measured(10, 10.4), 2) and judge.settled(measured(20, 10, -9, 10.4), 2)
    assert not judge.settled(measured(10, 10.6), 2) and not judge.settled(measured(10), 2) and judge.settled(measured(10), 1)
    assert judge.settled(measured(status="oom"), 2) and judge.settled(measured(status="failed"), 2)


def test_what_failed_is_told_as_failed_not_as_settled():
    said = []
    options = types.SimpleNamespace(repetitions=2)
    run = {"name": "net", "precision": "fp32", "batch": 8, "threads": 2, "status": "failed", "note": "no such file", "repetitions": []}
    told = types.SimpleNamespace(options=options, say=said.append, left=lambda: 5)
    runner.Run._tell(told, [run, {**run, "status": "oom"}], run)
    assert said == ["net fp32 batch 8, 2 threads: failed: no such file; 1 of 2 runs settled, 1 failed, 5 s left"]


def test_the_reference_runs_on_every_core_and_leaves_the_affinity_alone():
    before, threads = os.sched_getaffinity(0), torch.get_num_threads()
    try:
        kernel = reference.OnEachCore(reference.TRAINING)
        assert kernel.milliseconds(1) > 0 and set(kernel.cores) <= before and os.sched_getaffinity(0) == before
    finally:
        torch.set_num_threads(threads)


def test_as_many_steps_are_timed_as_the_time_allows():
    def count(each_s, left_s, **more):
        settings = {"seconds": 1.5, "end": time.monotonic() + left_s, **more}
        return child.Repetition(settings, None)._count(each_s)

    assert count(0.1, 60) == 15 and count(1.0, 60) == child.FEWEST and count(1e-5, 60) == child.MOST
    assert count(0.1, 60, steps=7) == 7
    assert count(1.0, 3.5) == 0, "too few to say something"
    assert child.FEWEST <= count(0.1, 1.05) < 15, "cut to what is left"


def test_what_running_out_of_memory_looks_like():
    try:
        torch.empty(1 << 44)
    except RuntimeError as error:
        assert child.out_of_memory(error)
        wrapped = CaptureError("raised in its step")
        wrapped.__context__ = error
        assert child.out_of_memory(wrapped)
    assert child.out_of_memory(MemoryError()) and not child.out_of_memory(RuntimeError("shapes cannot be multiplied"))


# -- the command ---------------------------------------------------------------------------------------------------------


def test_runs_are_measured_and_the_file_can_be_continued(tmp_path, finished):
    path = tmp_path / "rows.json"
    code, said = finished("tiny", "words", "--batches", "2,8", "--out", path, *BRIEF)
    assert code == 0 and "models may print" not in said, said
    found = rows.read(str(path))
    assert [(r["name"], r["batch"], r["threads"], r["status"]) for r in found["runs"]] == [
        ("tiny", 2, 1, "ok"), ("tiny", 8, 1, "ok"), ("words", 2, 1, "ok"), ("words", 8, 1, "ok")]
    for entry in found["runs"]:
        assert entry["optimizer"]["name"] == "sgd" and entry["optimizer"]["momentum"] == 0.9
        for row in entry["repetitions"]:
            assert row["steps"] == 5 and row["step_ms_p95"] >= row["step_ms"] > 0
            assert row["phases"]["forward_ms"] > 0 and row["phases"]["backward_ms"] > 0 and row["phases"]["optimizer_ms"] > 0
            assert row["resident_peak_bytes"] >= row["resident_after_bytes"] > row["resident_before_bytes"] > 50 << 20
            assert row["allocated_peak_bytes"] is None and row["good"] is (row["why"] == "")
    assert found["device"]["kind"] == "cpu" and found["device"]["memory_bytes"] > 0
    code, _ = finished("tiny", "--batches", "2", "--out", path, *BRIEF)
    again = rows.read(str(path))
    assert code == 0 and len(again["runs"]) == 4

    def measured(entry):  # what is judged anew when a faster reading of the reference kernel comes is left out
        return [{key: value for key, value in row.items() if key not in ("speed", "good", "why")} for row in entry["repetitions"]]

    for before, after in zip(found["runs"], again["runs"]):
        count = len(before["repetitions"])
        assert measured(after)[:count] == measured(before)
        if judge.settled({**after, "repetitions": after["repetitions"][:count]}, 1):
            assert len(after["repetitions"]) == count, "what is settled is not measured again"
    assert sorted(os.listdir(tmp_path)) == ["rows.json"]
    path.write_text(path.read_text().replace(f'"torch": "{torch.__version__}"', '"torch": "1.0"'))
    code, said = finished("tiny", "--batches", "2", "--out", path, *BRIEF)
    assert code == 3 and "was measured with another torch (1.0; here it is" in said


def test_each_failure_is_said_and_costs_nothing_but_itself(tmp_path, finished):
    path = tmp_path / "rows.json"
    code, said = finished("raises@4,8", "vector_loss@4", "frozen@4", "large@4,8", "killed@4", "tiny@4", "--out", path, *BRIEF)
    assert code == 0, said
    found = {(r["name"], r["batch"]): r for r in rows.read(str(path))["runs"]}
    notes = {"raises": "raised in its step (ValueError: my own mistake)", "vector_loss": "the loss is [{}] and has to be one number",
             "frozen": "needs a gradient, so there is no training step"}
    for name, words in notes.items():
        for batch in (4, 8) if name == "raises" else (4,):
            assert found[name, batch]["status"] == "failed" and words.format(batch) in found[name, batch]["note"]
            assert found[name, batch]["repetitions"] == []
    assert found["large", 4]["status"] == "ok" and found["large", 8]["status"] == "oom"
    assert found["large", 8]["note"].startswith("out of memory: ") and "smallest" not in found["large", 8]["note"]
    assert found["killed", 4]["status"] == "oom" and found["killed", 4]["note"].endswith("(at the smallest batch)")
    assert found["tiny", 4]["status"] == "ok"
    assert said.count("Traceback (your frames)") == 1 and "in forward" in said, "once a model"


def test_when_nothing_can_be_measured_the_reason_is_the_error(tmp_path, finished):
    for arguments, says in ((("raises", "--batches", "4"), "my own mistake"),
                            ((f"{MODELS}:nothing", "--batches", "4"), "has no function 'nothing'"),
                            ((f"{MODELS}:nothing",), "has no function 'nothing'"),
                            (("tiny", "--batches", "4", "--data", f"{MODELS}:of_three"), "makes batches of 3 and 4 were asked for")):
        code, said = finished(*arguments, "--out", tmp_path / "rows.json", *BRIEF)
        assert code == 3 and says in said and "bug in stoker" not in said, said
        assert said.strip().splitlines()[-1].startswith("stoker: ")


def test_the_users_data_and_the_models_own_batch(tmp_path, finished):
    path = tmp_path / "rows.json"
    code, said = finished("tiny", "--data", f"{MODELS}:loader", "--out", path, *BRIEF)
    assert code == 0, said
    found = rows.read(str(path))["runs"]
    assert [r["batch"] for r in found] == [2, 4, 8] and found[0]["asked"]["data"].endswith(":loader")
    assert all(r["repetitions"][0]["phases"]["data_ms"] > 0 for r in found)


def test_models_may_have_batches_of_their_own():
    assert runner.models_of(["a.py:f@8,16", "b.py:g", "c@d/e.py:h"], "4") == {"a.py:f": [8, 16], "b.py:g": [4], "c@d/e.py:h": [4]}
    assert runner.models_of(["a.py:f@8", "a.py:f@4,8", "b.py:g"], "auto") == {"a.py:f": [4, 8], "b.py:g": None}


@pytest.mark.parametrize("arguments, says", [
    (("--batches", "4,x"), "--batches 4,x: write whole numbers"), (("--batches", "4,4"), "each once"),
    (("--threads", "0"), "--threads 0: write whole numbers"), (("--precision", "fp8"), "'fp8' is no precision"),
    (("--budget", "soon"), "such as 90s"), (("--optimizer", "magic"), "choose from sgd"), (("--steps", "0"), "give 1 or more"),
    (("--device", "tpu"), "--device tpu: write cpu, cuda or cuda:N")])
def test_flags_that_cannot_be_meant_are_refused(tmp_path, arguments, says):
    options = runner.parser().parse_args([f"{MODELS}:tiny", "--out", str(tmp_path / "rows.json"), *arguments])
    with pytest.raises(CaptureError) as refused:
        runner.main(options, time.monotonic())
    assert says in str(refused.value) and os.listdir(tmp_path) == []


def test_a_gpu_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(nvidia, "run", lambda *arguments: "NVIDIA H100")
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(CaptureError, match="nvidia-smi shows a GPU, but this PyTorch .* is built without CUDA"):
        facts.check("cuda")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(CaptureError, match="PyTorch finds no GPU, though nvidia-smi shows one"):
        facts.check("cuda:0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert facts.check("cuda") == "cuda:0" and facts.check("cuda:1") == "cuda:1"
    with pytest.raises(CaptureError, match="the last is cuda:1"):
        facts.check("cuda:2")


def test_rows_that_cannot_be_written_are_said_and_damaged_ones_refused(tmp_path):
    with pytest.raises(CaptureError, match="cannot be written.*--out"):
        rows.write(rows.empty({}, {}), str(tmp_path / "none" / "rows.json"))
    path = tmp_path / "rows.json"
    for text in ("{", '{"format": "stoker-training-runs", "schema_version": [9, 0]}', "[]"):
        path.write_text(text)
        with pytest.raises(CaptureError, match="move it away to begin anew"):
            rows.read(str(path))
    made = rows.empty({"kind": "cpu"}, {"torch": "2"})
    made["runs"] = [{"status": "ok", "repetitions": [{"step_ms": 1.0}, {"step_ms": 2.0}]}, {"status": rows.WAITING, "repetitions": []}]
    rows.write(made, str(path))
    assert rows.read(str(path)) == {**made, "runs": made["runs"][:1]} and os.listdir(tmp_path) == ["rows.json"]


def test_a_disk_that_fills_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "rows.json"
    made = rows.empty({"kind": "cpu"}, {})
    rows.write(made, str(path))
    before = path.read_text()
    made["runs"] = [{"status": "ok", "repetitions": [{"step_ms": 1.0}]}]

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CaptureError, match="No space left on device"):
        rows.write(made, str(path))
    assert path.read_text() == before and os.listdir(tmp_path) == ["rows.json"]


def test_without_pytorch_it_is_said(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    done = subprocess.run([sys.executable, "-m", "stoker", "training-runs", "a.py:f", "--out", str(tmp_path / "rows.json")], text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(PYTHON)])})
    assert done.returncode == 3 and "need PyTorch" in done.stderr and "Traceback" not in done.stderr


def test_what_nvidia_smi_says(monkeypatch):
    answers = {"--query-gpu": "580.1, Disabled, 81559, 530, 1980, 0x0", "--query-compute-apps": "12, 400\n13, [N/A]"}
    monkeypatch.setattr(nvidia, "run", lambda i, which, query, *rest: answers[query.partition("=")[0]])
    smi = facts.nvidia_smi()
    assert smi["driver_version"] == "580.1" and smi["mig.mode.current"] == "Disabled"
    assert facts.others_bytes(smi) == 400 << 20 and len(smi["processes"]) == 2
    answers["--query-gpu"] = "No devices were found"
    assert facts.nvidia_smi() == {} and facts.others_bytes({}) == 0


# -- nothing left behind ---------------------------------------------------------------------------------------------------


def _children(pid) -> list:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry))
    return found


def _gone(pid) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _folders(path) -> list:
    return [name for name in os.listdir(path) if name.startswith("stoker-training-runs-")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_stays_behind_when_it_is_ended(tmp_path, number):
    path, temporary = tmp_path / "rows.json", tmp_path / "tmp"
    temporary.mkdir()
    process = run("slow", "--batches", "2", "--out", path, "--device", "cpu", "--threads", "1", "--steps", "500", "--budget", "200s",
                  TMPDIR=str(temporary))
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and len(_children(process.pid)) < 2:  # the keeper of the folder, and the measured one
            time.sleep(0.05)
        family = _children(process.pid)
        assert len(family) == 2 and len(_folders(temporary)) == 1
        time.sleep(1.0)
        process.send_signal(number)
        out, error = process.communicate(timeout=30)
    finally:
        process.kill()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (all(map(_gone, family)) and not _folders(temporary)):
        time.sleep(0.1)
    assert all(map(_gone, family)) and not _folders(temporary)
    if number == signal.SIGINT:
        assert process.returncode == 130 and "interrupted" in error
        assert json.loads(path.read_text())["runs"] == []
    else:
        assert not path.exists()
