"""scripts/measure-memory: its models are what they claim and can be captured, and it runs through on a CPU."""

import csv
import json
import subprocess
import sys

import pytest

from places import REPOSITORY
from steps import capture, check, value
from stoker.measure import nvidia
from stoker.surveys.memory import cases, main, pool, search, training

SCRIPTS = REPOSITORY / "scripts"

# Parameters as torchvision, timm (vit_small_patch16_224) and transformers count them.
KNOWN = {"resnet18": 11_689_512, "resnet50": 25_557_032, "vit_small": 22_050_664, "gpt2": 124_439_808}
MODELS = {c["model"] for c in cases.planned() if c != "searches" and "model" in c}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_what_is_measured_can_be_captured(on_cuda, name):
    words = name.startswith(("gpt2", "lstm"))
    doc = check(capture(f"{SCRIPTS}/measure_memory/models.py:{name}", fixed={"batch": 2, **({"seq_len": 16} if words else {})}))
    assert doc["diagnostics"] == {}, "the loss is the one that is measured"
    count = sum(value(doc["storages"][s][0], {}) // 4 for s in {p["storage"] for p in doc["parameters"]})
    assert count == KNOWN.get(name, count)


def test_it_runs_through_on_a_cpu(tmp_path):
    out = tmp_path / "measured"
    command = [sys.executable, str(SCRIPTS / "measure-memory"), "--device", "cpu", "--short", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    with open(out / "memory.csv") as file:
        rows = list(csv.DictReader(file))
    steps = [c for c in cases.short() if c["kind"] == "step"]
    assert [(r["model"], r["precision"], int(r["batch"]), r["status"]) for r in rows] == [
        (c["model"], c["precision"], c["batch"], "ok") for c in steps]
    assert tuple(rows[0]) == main.COLUMNS
    assert all(int(r["device_peak_bytes"]) > 50 << 20 and r["reserved_peak_bytes"] == "" for r in rows), "resident bytes"
    everything = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [r["case"]["kind"] for r in everything] == [c["kind"] for c in cases.short()]
    assert {s["stage"] for s in everything[0]["stages"]} >= {"context", "matmul_backward", "convolution"}
    about = json.loads((out / "metadata.json").read_text())
    assert about["complete"] is True and about["counts"]["ok"] == 3 and about["torch"] == rows[0]["torch"]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 1 and "holds results already" in again.stderr


def test_no_case_begins_when_the_budget_is_spent(tmp_path):
    command = [sys.executable, str(SCRIPTS / "measure-memory"), "--device", "cpu", "--budget", "1", "-o", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "the budget ended before the list did" in done.stdout
    assert json.loads((tmp_path / "metadata.json").read_text())["complete"] is False


def test_a_child_that_fails_or_hangs_is_a_row():
    children = pool.Pool()
    try:
        unknown = children.run({"kind": "nonsense", "device": "cpu"}, timeout=60)
        assert unknown["status"] == "failed" and "KeyError" in unknown["note"]
        broken = children.run({**cases.step("no_such_model", "fp32", "sgd", "foreach", 1), "device": "cpu"}, timeout=60)
        assert broken["status"] == "failed" and "no_such_model" in broken["note"]
        slow = children.run({"kind": "context", "device": "cpu"}, timeout=0.01)
        assert slow == {"status": "failed", "note": "took longer than 0 s"}
    finally:
        children.close()


def test_out_of_memory_is_a_result(monkeypatch):
    class Trainer:
        def __init__(self, case, device, copied):
            self.steps = 0

        def step(self):
            self.steps += 1
            if self.steps > case["good"]:
                raise training.OUT_OF_MEMORY("CUDA out of memory. Tried to allocate 20.00 MiB.")

    case = {"good": 1, "iterations": 4}
    monkeypatch.setattr(training, "Trainer", Trainer)
    row = training.measure(case, "cpu")
    assert row["status"] == "oom" and "Tried to allocate" in row["message"] and len(row["iterations"]) == 2
    case["good"] = 4
    assert training.measure(case, "cpu")["status"] == "ok"


def test_what_is_beside_the_segments_is_added_to_their_peak():
    iterations = [{"allocated_peak_bytes": 70, "reserved_peak_bytes": 100, "reserved_bytes": 100, "used_bytes": 150},
                  {"allocated_peak_bytes": 80, "reserved_peak_bytes": 130, "reserved_bytes": 90, "used_bytes": 175}]
    assert training.summary(iterations, 25, "cuda") == {
        "allocated_peak_bytes": 80, "reserved_peak_bytes": 130, "context_bytes": 60, "device_peak_bytes": 190}


@pytest.mark.parametrize("largest", [1, 7, 8, 9, 23, 100])
def test_the_search_ends_at_the_largest_batch(largest):
    tried = {}
    for batch, row in search.tries(lambda batch: {"status": "ok" if batch <= largest else "oom"}, most=20):
        assert batch >= 1 and batch not in tried
        tried[batch] = row["status"]
    assert tried[largest] == "ok" and tried[largest + 1] == "oom"


def test_the_order_buys_the_most_first_and_repeats_nothing():
    planned = cases.planned()
    assert planned[0]["kind"] == "context" and all(planned.count(c) == 1 for c in planned)
    first = [c for c in planned[:20] if c != "searches"]
    assert {c["model"] for c in first if "model" in c} >= set(KNOWN) and {c["kind"] for c in first} >= {"step", "snapshot"}
    assert {c["precision"] for c in planned if "precision" in c} == set(cases.PRECISIONS)
    shaped = cases.step("gpt2", "amp-fp16", "adamw", "foreach", 4, clip=True, accumulate=2)
    assert cases.flags(shaped) == "--clip --accumulate 2 --weight-decay 0.01 --grad-scaler"


def test_other_processes_on_the_gpu_are_summed():
    assert nvidia.bytes_of(nvidia.parse_processes("123, 512\n456, 20\n789, [N/A]")) == 532 << 20
    assert nvidia.bytes_of([]) == 0


@pytest.fixture
def counted_cuda(on_cuda, monkeypatch):
    """Fake CUDA tensors, and torch.cuda's books kept as constants: every line for a GPU runs, no figure means anything."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from stoker.tracing import fake_model

    class Properties:
        total_memory, multi_processor_count, major, minor = 16 << 30, 80, 7, 0

    answers = {"init": None, "synchronize": None, "mem_get_info": (12 << 30, 16 << 30), "memory_allocated": 2 << 30,
               "memory_reserved": 3 << 30, "max_memory_allocated": 2 << 30, "max_memory_reserved": 3 << 30,
               "reset_peak_memory_stats": None, "memory_stats": {"num_ooms": 0}, "get_device_properties": Properties}
    for name, answer in answers.items():
        assert hasattr(torch.cuda, name)
        monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    fractions = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", fractions.append)
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", lambda **settings: None)
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: {"segments": [], "device_traces": [[1, 2]]})
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor, raising=False)
    def to(module, *_, **__):
        fake_model.Mover("cuda", "fp32").move(module)
        return module

    monkeypatch.setattr(torch.nn.Module, "to", to)
    monkeypatch.setattr(torch.amp.GradScaler, "step", lambda scaler, optimizer: optimizer.step())
    monkeypatch.setattr(torch.amp.GradScaler, "update", lambda scaler: None)
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield fractions


@pytest.mark.parametrize("number", range(len(cases._shapes())))
def test_the_lines_for_a_gpu_run_on_fake_tensors(counted_cuda, number):
    case = {**cases._shapes()[number], "batch": 2, "iterations": 1, "limit_bytes": 4 << 30, "others_bytes": 1 << 28}
    row = training.measure(case, "cuda")
    assert row["status"] == "ok" and row["reserved_peak_bytes"] == 3 << 30 and counted_cuda == [0.25]
    assert row["context_bytes"] == (1 << 30) - (1 << 28) and row["total_bytes"] == 16 << 30


def test_probes_for_a_gpu_run_on_fake_tensors(counted_cuda, tmp_path):
    from stoker.surveys.memory import probes

    row = probes.context({}, "cuda")
    assert {s["outside_bytes"] for s in row["stages"]} == {1 << 30} and row["capability"] == "7.0"
    assert set(row["workspaces"]) == {"matmul", "matmul_backward", "matmul_with_bias", "half_matmul"}
    case = {**cases.step("mlp", "fp32", "adamw", "foreach", 4, iterations=1), "file": str(tmp_path / "x.pickle.gz")}
    assert probes.snapshot(case, "cuda")["trace_entries"] == 2 and (tmp_path / "x.pickle.gz").stat().st_size > 20
