"""scripts/measure-time: it runs through on a CPU, goes on where it ended, and what it times can be captured."""

import csv
import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from places import REPOSITORY
from steps import capture, check
from stoker.calibrate.gpu import child as gpu_child
from stoker.calibrate.gpu import operators, stopwatch, watch
from stoker.calibrate.gpu import worker as workers
from stoker.surveys import models
from stoker.surveys.times import cases, fit_rows, main

SCRIPTS = REPOSITORY / "scripts"

OWN = ("bert", "convnext", "deep_narrow", "grouped_net", "mobilenet", "small_cnn", "unet", "vgg16")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(*arguments):
    command = [sys.executable, str(SCRIPTS / "measure-time"), "--device", "cpu", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_it_runs_through_on_a_cpu_and_goes_on_where_it_ended(tmp_path):
    out = tmp_path / "measured"
    cut = run("--budget", "1s", "-o", str(out))
    assert "the budget ended before the list did" in cut.stdout
    assert json.loads((out / "machine.json").read_text())["runs"][0]["complete"] is False
    done = run("--budget", "300s", "-o", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    found = {kind: rows_of(out / name) for kind, (name, _) in main.TABLES.items()}
    for kind, (_, columns) in main.TABLES.items():
        assert tuple(found[kind][0]) == columns
        wanted = [cases.key_of(c) for c in cases.short() if c["kind"] == kind]
        assert list(dict.fromkeys(r["case"] for r in found[kind])) == wanted, "each case once, in order"
    assert {r["status"] for r in found["step"]} == {"ok"} and all(float(r["step_ms"]) > 0 for r in found["step"])
    assert all(float(r["step_ms"]) > 0 and float(r["backward_ms"]) > 0 for r in found["step"])
    assert {r["status"] for r in found["operator"]} <= {"ok", "noisy"}
    assert all(float(r["call_us"]) > 0 and r["kernel_us"] == "" for r in found["operator"] if r["status"] == "ok")
    assert {r["pass"] for r in found["operator"] if r["operator"] == "conv2d"} == {"forward", "backward_input", "backward_weight"}
    assert {r["status"] for r in found["host"] if r["what"] == "copy"} == {"skipped"}
    fit = rows_of(out / "fit.csv")
    # A row that a busy machine made noisy is left out of fit.csv, no other.
    quiet = [r for r in found["operator"] if r["status"] == "ok"]
    empty = cases.key_of(cases.EMPTY_KERNEL)
    assert [r["kind"] for r in fit] == ["launch" if r["case"] == empty else r["kind"] for r in quiet
                                        if (r["pass"] == "forward" if r["case"] == empty else r["kind"])]
    assert all(r["k"] == "64" for r in fit if r["kind"] == "gemm")
    about = json.loads((out / "machine.json").read_text())
    assert [r["complete"] for r in about["runs"]] == [False, True] and about["torch"] == torch.__version__


def test_results_of_another_machine_are_not_mixed(tmp_path):
    (tmp_path / "machine.json").write_text(json.dumps({"gpu": "another", "driver": "", "torch": "0", "cuda": ""}))
    refused = run("-o", str(tmp_path))
    assert refused.returncode == 1 and "was measured with another gpu, torch" in refused.stderr


@pytest.mark.parametrize("name", OWN)
def test_what_is_timed_can_be_captured(on_cuda, name):
    doc = check(capture(f"{SCRIPTS}/measure_time/models.py:{name}", fixed={"batch": 2}))
    assert doc["diagnostics"] == {}, "the loss is the one that is timed"


def test_every_model_of_a_step_is_known():
    for case in cases.planned():
        if case["kind"] == "step":
            own = models.spec_of(case["model"]).startswith("scripts/measure_time/")
            assert own == (case["model"] in OWN) and (not own or callable(models.function_of(case["model"])))


def test_cases_are_told_apart_and_every_operator_can_be_built():
    planned = cases.planned()
    keys = [(c["kind"], cases.key_of(c)) for c in planned]
    assert len(set(keys)) == len(keys)
    assert {c["operator"] for c in planned if c["kind"] == "operator"} <= set(operators.BUILDERS)
    first = {"step", "operator", "host"} - {c["kind"] for c in planned[:60]}
    assert not first, f"a run that is cut short has no {first}"


def shrunk(case):
    """An operator of a size that a CPU does not notice."""
    small = {"batch": 2, "m": 9, "n": 8, "k": 7, "heads": 2, "query_length": 8, "key_length": 8, "head_dim": 16, "length": 8,
             "width": 16, "height": 14, "side": 8,
             "tensors": 2, "vectors": 2, "ids": 5}
    shape = {k: min(v, small[k]) if k in small else v for k, v in case["shape"].items()}
    if "dims" in shape:
        shape["dims"] = "x".join("4" for _ in shape["dims"].split("x"))
    if case["operator"] == "conv2d":
        groups = shape.get("groups", 1)
        shape.update({"in_channels": max(4, groups), "out_channels": max(4, groups)})
    return {**case, "shape": shape}


def test_every_kind_of_operator_runs():
    seen = set()
    for case in cases.planned():
        if case["kind"] != "operator" or case["precision"] == "fp16":
            continue
        # Loops and layouts make cases of their own; sizes do not.
        kind = (case["operator"], case["precision"], *(case["shape"].get(k) for k in ("loop", "kind", "channels_last",
                                                                                      "transpose_a", "backend")))
        if kind in seen:
            continue
        seen.add(kind)
        built = operators.build(shrunk(case), "cpu")
        forward, backwards = built.runs(2)
        assert forward(0) is None or forward(1).numel() > 0
        for both in backwards.values():
            assert all(g is not None and g.isfinite().all() for g in both(1))


def test_flops_are_those_that_pytorch_counts():
    from torch.utils.flop_counter import FlopCounterMode

    for case in (cases.operator("gemm", "fp32", batch=3, m=5, n=6, k=7, transpose_b=1), cases.operator("linear", "fp32", m=5, n=6, k=7),
                 cases.operator("conv2d", "fp32", batch=2, in_channels=8, out_channels=12, height=14, width=10, kernel=3, stride=2,
                                groups=4)):
        built = operators.build(case, "cpu")
        forward, _ = built.runs(1)
        with FlopCounterMode(display=False) as counter:
            forward(0)
        assert counter.get_total_flops() == built.flops, case


def test_rows_carry_the_words_of_fit():
    terms = {c["operator"]: cases.fit_terms(c, "forward") for c in cases.short() if c["kind"] == "operator"}
    assert terms["gemm"] == ("gemm", {"m": 64, "n": 64, "k": 64, "transpose_b": 1})
    assert terms["conv2d"][0] == "convolution" and terms["conv2d"][1]["in_channels"] == 8
    assert terms["softmax"] == ("softmax", {"rows": 32, "width": 64})
    assert terms["embedding"] == ("gather", {"elements": 32 * 16})
    assert terms["lstm"] == ("", {}) and terms["attention"] == ("", {}), "no single kernel is known for them"
    flash = cases.operator("attention", "bf16", batch=1, heads=2, query_length=8, key_length=8, head_dim=4, backend="flash")
    assert cases.fit_terms(flash, "backward") == ("attention", {"batch": 1, "heads": 2, "query_length": 8, "key_length": 8,
                                                                "head_dim": 4})
    fused = cases.operator("optimizer", "fp32", kind="adamw", loop="fused", tensors=2, side=10, vectors=3)
    assert cases.fit_terms(fused, "forward") == ("optimizer", {"elements": 230, "reads": 4, "writes": 3})


def test_fit_takes_what_was_measured_and_is_one_kernel():
    measured = [{"case": "gemm", "status": "ok", "time_us": "9", "spread": "0.1", "gpu": "T4", "kind": "gemm", "precision": "fp16",
                 "pass": "forward", "warm": "1", "sizes": "m=1 n=2 k=3"}]
    noisy = {**measured[0], "status": "noisy"}
    many = {**measured[0], "kind": "", "sizes": ""}
    empty = {**measured[0], "case": cases.key_of(cases.EMPTY_KERNEL), "kind": "copy", "sizes": "elements=16"}
    assert fit_rows.rows_of([*measured, noisy, many, empty]) == [
        {"kind": "gemm", "precision": "fp16", "pass": "forward", "warm": "1", "gpu": "T4", "time_us": "9", "spread": "0.1",
         "m": "1", "n": "2", "k": "3"},
        {"kind": "launch", "gpu": "T4", "time_us": "9", "spread": "0.1"}]


def test_the_backward_is_what_is_added():
    row = gpu_child.less({"call_us": 30.0, "idle_us": 50.0, "kernel_us": 9.0}, {"call_us": 10.0, "kernel_us": 4.0})
    assert row == {"call_us": 20.0, "idle_us": None, "kernel_us": 5.0}
    assert gpu_child.less({"call_us": 9.0}, {"call_us": 10.0})["status"] == "noisy"


def test_a_case_that_kills_the_process_costs_itself_only():
    worker = workers.Worker(main.CHILD)
    try:
        assert worker.run({"kind": "nonsense", "device": "cpu"}, 60)[0]["status"] == "failed"
        os.kill(worker._child.pid, signal.SIGKILL)
        worker._child.code()
        ok = worker.run({**cases.host()[0], "device": "cpu"}, 60)
        assert ok[0]["status"] == "ok"
        assert worker.run({**cases.host()[0], "device": "cpu"}, 1e-6) == [], "not finished: no row, so that it is run again"
    finally:
        worker.close()


def test_what_nvidia_smi_says():
    assert watch.parse("1980, 451.20, 61, 0x0000000000000004\n") == {
        "sm_mhz": 1980.0, "power_w": 451.2, "temperature_c": 61.0, "throttle": "0x4"}
    assert watch.parse("210, [N/A], 30, 0x0000000000000001\n")["throttle"] == ""
    assert watch.parse("210, [N/A], 30, 0x1\n")["power_w"] is None
    assert watch.parse("Failed to initialize NVML\n") == {}


def test_operands_are_rotated_past_the_cache(monkeypatch):
    monkeypatch.setattr(stopwatch, "device_l2", lambda device: 50 << 20)
    assert stopwatch.copies_for("cuda", 200 << 20) == 1
    assert stopwatch.copies_for("cuda", 25 << 20) == 5
    assert stopwatch.copies_for("cuda", 1 << 10) == stopwatch.MOST_COPIES
    assert stopwatch.copies_for("cpu", 1 << 10) == 1


@pytest.mark.parametrize("text,seconds", [("480", 480), ("20s", 20), ("8m", 480), ("0.5m", 30)])
def test_times_have_units(text, seconds):
    assert main.seconds_of(text) == seconds
