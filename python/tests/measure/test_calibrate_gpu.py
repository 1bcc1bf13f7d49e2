"""stoker calibrate-runs on a GPU, where there is none: what nvidia-smi and the measuring process say, and what becomes of it."""

import time
import types

import pytest

from stoker.calibrate import command, cuda_run, rows
from stoker.calibrate.gpu import all_reduce, cases, facts, watch
from stoker.errors import CaptureError
from stoker.measure import nvidia
from stoker.measure.budget import Budget

SMI = "NVIDIA L4, GPU-1, 550.1, 23034, 600, 3, Disabled, 2040, 72.00, Enabled"


def fake_torch(count=1, available=True, cuda="12.8", name="NVIDIA L4"):
    properties = types.SimpleNamespace(name=name, major=8, minor=9, multi_processor_count=58, L2_cache_size=48 << 20, uuid="1",
                                       total_memory=22 << 30)
    gpu = types.SimpleNamespace(is_available=lambda: available, device_count=lambda: count, get_device_properties=lambda i: properties,
                                nccl=types.SimpleNamespace(version=lambda: (2, 27, 3)))
    backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91000))
    return types.SimpleNamespace(cuda=gpu, backends=backends, __version__="2.13.0", version=types.SimpleNamespace(cuda=cuda, hip=None))


@pytest.fixture
def smi(monkeypatch):
    """What nvidia-smi says: tests change it."""
    said = {"--query-gpu=name": "NVIDIA L4", "--query-gpu=" + ",".join(facts._QUERY): SMI, "--query-compute-apps=pid,used_memory": ""}
    monkeypatch.setattr(nvidia, "run", lambda *words: next((text for key, text in said.items() if key in words), ""))
    return said


class FakeWorker:
    """Answers every case at once, as the process would; `die_at` cases have no answer within the budget."""

    def __init__(self, seconds=9e9):
        self.asked, self.started, self.closed, self.seconds = [], False, False, seconds

    def start(self, limit_s):
        self.started = True

    def run(self, case, timeout):
        self.asked.append(case)
        if case["kind"] == "host" and case["what"] == "context":
            return [{"status": "ok", "bytes": 1000 << 20}]
        if case["kind"] == "host":
            return [{"status": "ok", "us": 7.5, "gb_per_s": 12.0}] if case["what"] != "synchronize" else [{"status": "ok", "us": 20.0}]
        passes = ("forward", "backward_input", "backward_weight") if case["operator"] == "conv2d" else ("forward", "backward")
        return [{"status": "ok", "pass": name, "time_us": 100.0, "spread": 0.01, "warm": 0, "calls": 50, "idle_us": 30.0}
                for name in passes]

    def pid(self):
        return 99

    def close(self):
        self.closed = True


def run_of(tmp_path, monkeypatch, torch, budget_s=1000.0, arguments=()):
    options = command.parser().parse_args(["--out", str(tmp_path / "cal.json"), "--device", "cuda", "--quiet", *arguments])
    monkeypatch.setattr(cuda_run, "Worker", FakeWorker)
    monkeypatch.setattr(cuda_run.watch, "Watch", lambda wanted, which: types.SimpleNamespace(summary=dict, close=lambda: None))
    return cuda_run.Run(options, Budget(budget_s), torch, 0)


def test_a_gpu_is_calibrated_and_the_next_run_goes_on(tmp_path, monkeypatch, smi):
    run = run_of(tmp_path, monkeypatch, fake_torch())
    run.measure()
    run.close()
    run.save()
    file = rows.read(str(tmp_path / "cal.json"))
    assert file["complete"] and run.worker.closed and file["device"]["compute_capability"] == "8.9" and not file["device"]["mig"]
    assert file["provenance"]["driver"] == "550.1" and not file["load"]["disturbed"]
    figures = {f["name"]: f["value"] for f in file["figures"]}
    assert figures["context_mib"] == 400.0 and file["device"]["context_bytes"] == 400 << 20, "600 MiB were in use before"
    assert figures["launch_floor_us"] == 100.0 and figures["host_dispatch_us"] == 7.5
    assert figures["pinned_gbs"] == figures["pageable_gbs"] == 12.0
    kinds = {row["kind"] for row in file["operators"]}
    assert kinds >= {"gemm", "convolution", "attention", "batch_norm", "layer_norm", "softmax", "elementwise", "copy", "gather",
                     "optimizer"}
    assert all(row["threads"] == 0 and row["function"] == "" for row in file["operators"])
    assert not any(row["sizes"].get("elements") == 16 for row in file["operators"]), "the empty kernel is the floor, no operator"
    again = run_of(tmp_path, monkeypatch, fake_torch())
    again.measure()
    assert again.worker.asked == []


def test_what_failed_is_tried_again_and_nothing_at_all_is_an_error(tmp_path, monkeypatch, smi):
    run = run_of(tmp_path, monkeypatch, fake_torch())
    works = run.worker.run
    monkeypatch.setattr(run.worker, "run", lambda case, limit: [{"status": "failed", "note": "no kernel image"}])
    with pytest.raises(CaptureError, match="nothing could be measured on this GPU: no kernel image"):
        run.measure()
    monkeypatch.setattr(run.worker, "run", works)
    run.measure()
    assert len(run.worker.asked) == len(cases.planned()) and set(run.file["cases"].values()) == {"ok"}


def test_an_all_reduce_that_fails_is_not_repeated_before_every_case(tmp_path, monkeypatch, smi):
    tried = []
    monkeypatch.setattr(all_reduce, "measure", lambda gpus, limit: tried.append(gpus) or [])
    run_of(tmp_path, monkeypatch, fake_torch(count=2)).measure()
    assert tried == [2]


def test_an_idle_gpu_and_set_clocks_are_no_throttling(tmp_path, monkeypatch):
    lines = ["210, 60.0, 30, 0x0000000000000001", "1980, 300.0, 50, 0x0000000000000002", "1900, 300.0, 50, 0x0000000000000006"]
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    seen = watch.Watch(True)
    deadline = time.monotonic() + 20
    while seen.latest().get("sm_mhz") != 1900.0 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.05)
    seen.close()
    found = seen.summary()
    assert found["samples"] == 2 and found["sm_mhz_least"] == 1900.0 and found["throttle_samples"] == {"0x4": 1}


def test_others_on_the_gpu_its_clock_and_mig_are_said(tmp_path, monkeypatch, smi):
    smi["--query-compute-apps=pid,used_memory"] = "4711, 2048\n4712, [N/A]\n"
    run = run_of(tmp_path, monkeypatch, fake_torch())
    run.save()
    load = rows.read(str(tmp_path / "cal.json"))["load"]
    assert load["disturbed"] and load["others_on_gpu"] == 2 and "2 other processes on the GPU held 2,048 MiB" in load["why"]
    steady = {"samples": 20, "sm_mhz_median": 2000.0, "sm_mhz_low": 1980.0, "throttle_samples": {}}
    assert facts.objections("3", [], steady, False) == ([], False)
    assert facts.objections("40", [], steady, False)[0] == ["the GPU was 40 % busy before this began"]
    throttled = {**steady, "throttle_samples": {"0x4": 5}}
    assert facts.objections("[N/A]", [], throttled, False)[1] and "0x4" in facts.objections("0", [], throttled, False)[0][0]
    assert facts.clocks_changed({**steady, "sm_mhz_low": 1500.0})
    assert not facts.clocks_changed({**steady, "samples": 3, "sm_mhz_low": 1500.0})
    assert "MIG" in facts.objections("0", [], steady, True)[0][0]


def test_a_mig_slice_is_known_by_name_and_has_the_memory_of_the_slice(smi):
    found = facts.describe(fake_torch(name="NVIDIA A100 MIG 1g.5gb"), 0, nvidia.parse_query(SMI, facts._QUERY))
    assert found["mig"] and found["memory_bytes"] == 22 << 30
    whole = facts.describe(fake_torch(), 0, nvidia.parse_query(SMI, facts._QUERY))
    assert whole["memory_bytes"] == 23034 << 20 and whole["usable_bytes"] == 22 << 30


@pytest.mark.parametrize("version, built_for, listed, hidden, says", [
    ("2.13.0+cpu", None, ["NVIDIA L4"], None, "built without CUDA: install a CUDA build"),
    ("2.13.0", "12.8", ["NVIDIA L4"], "", "CUDA_VISIBLE_DEVICES is \"\" and hides it"),
    ("2.13.0", "12.8", ["NVIDIA L4", "NVIDIA L4"], None, "2 GPUs (NVIDIA L4), but this PyTorch (2.13.0, CUDA 12.8) cannot use it"),
    ("2.13.0", "12.8", [], None, "no GPU is here"), ("2.13.0+cpu", None, [], None, "--device cpu")])
def test_a_gpu_that_pytorch_cannot_use_is_said_with_the_cure(monkeypatch, version, built_for, listed, hidden, says):
    if hidden is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert says in facts.why_not(version, built_for, listed)


def test_an_index_beyond_the_gpus_is_refused(smi):
    with pytest.raises(CaptureError, match="cuda:3: there are 2 GPUs here that PyTorch may use; write cuda:0 to cuda:1"):
        facts.check(fake_torch(count=2), 3)
    with pytest.raises(CaptureError, match="there is one GPU"):
        facts.check(fake_torch(), 1)
    with pytest.raises(CaptureError, match="cannot use it"):
        facts.check(fake_torch(available=False), 0)


def test_threads_belong_to_the_cpu(tmp_path, monkeypatch, smi):
    with pytest.raises(CaptureError, match="--threads belongs to --device cpu"):
        run_of(tmp_path, monkeypatch, fake_torch(), arguments=("--threads", "2"))


def test_a_budget_that_ends_leaves_the_rest_for_the_next_run(tmp_path, monkeypatch, smi):
    run = run_of(tmp_path, monkeypatch, fake_torch(), budget_s=0.0)
    run.measure()
    run.save()
    file = rows.read(str(tmp_path / "cal.json"))
    assert not file["complete"] and file["operators"] == [] and run.worker.asked == []


def test_what_nvidia_smi_prints_is_read():
    assert nvidia.parse_query(SMI, facts._QUERY)["memory.total"] == "23034"
    assert nvidia.parse_query("No devices were found", facts._QUERY) == {}
    assert nvidia.parse_processes("12, 512\n13, [Not Supported]\nnonsense\n") == [(12, 512 << 20), (13, 0)]
    assert facts.others([(12, 5), (13, 6)], {12}) == [(13, 6)]
    assert facts.joined([(99, 5), (13, 6)], [], {99}) == [(13, 6)] and facts.joined([(7, 5)], [(8, 1)], {99}) == [(8, 1)]
    assert nvidia.selector(fake_torch(), 0) == "GPU-1"


def test_the_cases_begin_with_what_all_else_rests_on():
    planned = cases.planned()
    keys = [cases.key_of(case) for case in planned]
    assert len(set(keys)) == len(keys) and cases.EMPTY_KERNEL in planned[:15]
    early = planned[:80]
    assert {case["precision"] for case in early if case["kind"] == "operator"} == {"bf16", "tf32", "fp32"}
    assert any(case.get("warm") for case in early) and any(case["what"] == "copy" for case in early if case["kind"] == "host")


def test_all_reduce_by_size_over_processes():
    found = all_reduce.measure(2, backend="gloo")
    assert [row["bytes"] for row in found] == list(all_reduce.SIZES[:4]) and all(row["time_us"] > 0 and row["gpus"] == 2 for row in found)
    assert all_reduce.bandwidth_gbs(found) > 0 and all_reduce.bandwidth_gbs([]) == 0
    assert all_reduce.measure(2, limit_s=0.01, backend="gloo") == [], "too slow: nothing, and nobody stays"
