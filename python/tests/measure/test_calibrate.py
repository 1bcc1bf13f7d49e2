"""stoker calibrate-runs on the CPU: its operators are those of training, and its readings what a plain loop takes."""

import math
import os
import statistics
import subprocess
import sys
import time

import pytest
import torch

from stoker.calibrate import cpu_figures, cpu_run, estimate, general, operands, operators, options, rounds, spec, speed, wanted
from stoker.errors import CaptureError
from stoker.measure import budget as budgets
from stoker.measure import contention, machine, processes, signals


def small(s):
    """An operator of a size that a CPU does not notice."""
    least = {"elements": 64, "batch": 1, "m": 6, "n": 5, "k": 4, "heads": 2, "query_length": 8, "key_length": 8, "head_dim": 16, "rows": 4,
             "width": 8, "table": 32, "height": 8}
    if s.kind == "gather":
        return s if s.size("elements") <= 1 << 18 and math.prod(s.dims[:2]) <= 1 << 18 else None
    if s.kind in ("pooling", "batch_norm") or s.dims:
        return None if math.prod(s.dims) > 1 << 20 else s
    sizes = {name: min(value, least.get(name, value)) for name, value in s.sizes}
    if s.kind == "convolution":
        groups = s.size("groups", 1)
        sizes.update(in_channels=8 if groups == s.size("in_channels") else s.size("in_channels"), width=8, height=8, batch=1)
        if groups == s.size("in_channels"):
            sizes.update(out_channels=8, groups=8)
    return spec.Spec(s.kind, s.function, tuple(sizes.items()), s.precision, s.pass_, True)


@pytest.fixture(scope="module")
def pool():
    return operands.Pool(8 << 20)


def test_every_operator_of_the_general_set_runs(pool):
    seen = set()
    with torch.no_grad():
        for s in general.everything():
            key = (s.function, s.pass_, s.precision, s.size("kernel"), s.size("transpose_a"), bool(s.dims))
            if key in seen or (tried := small(s)) is None:
                continue
            seen.add(key)
            call = operators.build(tried, pool)
            for _ in range(2):
                out = call.function(*call.sets[0])
            for tensor in out if isinstance(out, (tuple, list)) else [out]:
                assert tensor is None or not tensor.is_floating_point() or tensor.isfinite().all(), s
    assert {key[0] for key in seen} == {s.function for s in general.everything()}


def test_operators_written_over_and_over_leave_the_pool_as_it_is(pool):
    before = pool.values(torch.float32)[:4096].clone()
    with torch.no_grad():
        for name in operators.ELEMENTWISE:
            call = operators.build(spec.spec("elementwise", name, elements=1024, inputs=operators.ELEMENTWISE[name][1]), pool)
            for _ in range(100):
                call.function(*call.sets[0])
    assert torch.allclose(before, pool.values(torch.float32)[:4096], rtol=1e-4)


def test_cold_operands_go_round_the_pool(pool):
    call = operators.build(spec.spec("elementwise", "add", elements=131072, inputs=2, warm=False), pool)
    starts = {t.data_ptr() for operand_set in call.sets for t in operand_set}
    assert len(call.sets) == 8 and len(starts) == 16, "8 MiB hold eight pairs of 512 KiB"


def test_caches_are_emptied_before_each_cold_call(pool):
    wanted_spec = spec.spec("gemm", "mm", m=64, n=64, k=64, warm=False)
    emptied = []
    timed = rounds.Timed(wanted_spec, operators.build(wanted_spec, pool), lambda: emptied.append(True))
    timed.warm_up(1)
    before = len(emptied)
    assert timed.read(1) > 0 and len(emptied) - before == timed.calls[1] <= rounds._MOST_FLUSHED
    flush = rounds.Flush(1 << 20)
    flush()
    assert flush._values.numel() == torch.get_num_threads() * (1 << 19), "two megabytes for each thread"


def test_the_general_set_covers_what_nets_need_and_begins_with_some_of_each():
    everything = general.everything()
    keys = [s.key() for s in everything]
    assert len(set(keys)) == len(keys) and len(keys) > 500
    first = everything[:150]
    assert {s.kind for s in first} == {s.kind for s in everything}
    convolutions = [s for s in everything if s.kind == "convolution"]
    assert {s.size("kernel") for s in convolutions} >= {1, 3, 5, 7}
    assert {(s.size("stride", 1)) for s in convolutions} >= {1, 2}
    assert any(s.size("groups") == s.size("in_channels") for s in convolutions)
    assert any(1 < s.size("groups", 1) < s.size("in_channels") for s in convolutions)
    assert {s.pass_ for s in convolutions} == {"forward", "backward_input", "backward_weight"}
    assert max(operators.flops_of(s) for s in everything) <= 5 * general.MOST_FLOPS
    sizes = [s.size("elements") for s in everything if s.function == "add"]
    assert min(sizes) < 200 and max(sizes) * 4 > 30 << 20


def dispatched(step):
    """Names of the ATen operators of a training step on this CPU, without views."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names = set()

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if not func.is_view and func.namespace == "aten":
                names.add(func.name().removeprefix("aten::").partition(".")[0])
            return func(*args, **(kwargs or {}))

    with Seen():
        step()
    return names


def nets():
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = nn.Embedding(50, 32), nn.LayerNorm(32)
            self.qkv, self.out, self.head = nn.Linear(32, 96), nn.Linear(32, 32), nn.Linear(32, 50)

        def forward(self, ids):
            x = self.norm(self.table(ids))
            q, k, v = (t.view(2, -1, 4, 8).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, -1, 32)
            return self.head(nn.functional.gelu(x + nn.functional.dropout(self.out(y), 0.1))).flatten(0, 1)

    convolutional = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.Hardswish(),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 10))
    return ((convolutional, torch.rand(2, 3, 16, 16), torch.zeros(2, dtype=torch.long)),
            (Block(), torch.zeros(2, 16, dtype=torch.long), torch.zeros(32, dtype=torch.long)))


# What costs next to nothing, or is no arithmetic of the device.
IGNORED = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "_local_scalar_dense", "ones_like",
           "lift_fresh", "scalar_tensor"}


def test_what_pytorch_dispatches_in_training_is_measured():
    known = {s.function for s in general.everything()}
    for net, inputs, targets in nets():
        for make in (lambda p: torch.optim.AdamW(p, foreach=False), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=False)):
            optimizer = make(net.parameters())

            def step():
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(net(inputs), targets).backward()
                optimizer.step()

            step()
            assert dispatched(step) - known - IGNORED == set()


# -- statistics --------------------------------------------------------------------------------------------------------


def test_of_disturbed_readings_the_better_half_counts():
    calm = [100, 101, 99, 100, 102]
    assert estimate.better_half([*calm, 250, 300]) == pytest.approx(100, abs=1)
    assert estimate.spread(calm) < 0.02 < estimate.spread([100, 120, 140, 90, 70])
    assert estimate.better_half([5]) == 5 and estimate.spread([5]) == 0


def test_readings_of_a_slow_machine_are_thrown_away_and_taken_again(pool):
    class Slow:
        """The machine's speed, of which the test decides."""

        def __init__(self):
            self.taken = 0

        def reading(self, threads):
            self.taken += 1
            return 2.0 if self.taken <= 3 else 1.0

        def is_slow(self, value, threads):
            return value > 1.05

    class Quiet:
        def lap(self):
            return 0.0, 0.0

    engine = rounds.Rounds(Slow(), Quiet())
    timed = rounds.Timed(spec.spec("elementwise", "add", elements=256, inputs=2),
                         operators.build(spec.spec("elementwise", "add", elements=256, inputs=2), pool))
    timed.warm_up(1)
    engine.measure([timed], [1], time.monotonic() + 60)
    assert engine.thrown_away == 2 and len(timed.good(1)) == rounds.ROUNDS - 2 >= rounds.LEAST_GOOD
    row = timed.row(1)
    assert row["repetitions"] == rounds.ROUNDS - 2 and row["time_us"] > 0 and row["sizes"] == {"elements": 256, "inputs": 2}
    assert torch.get_num_threads() == 1
    again = timed.again(timed.call)
    again.warm_up(1)
    engine.measure([again], [1], time.monotonic() + 60)
    assert len(timed.good(1)) == 2 * rounds.ROUNDS - 2 and timed.doubt() == again.doubt() < 1, "what is measured again is added"


def test_under_load_nothing_counts_and_the_file_says_so(pool):
    class Loaded:
        def lap(self):
            return 1e6, 0.0

    engine = rounds.Rounds(speed.Speed(), Loaded())
    timed = rounds.Timed(spec.spec("fill", "zero_", elements=256), operators.build(spec.spec("fill", "zero_", elements=256), pool))
    timed.warm_up(1)
    engine.measure([timed], [1], time.monotonic() + 60)
    assert timed.good(1) == [] and engine.thrown_away == engine.taken
    assert timed.row(1)["repetitions"] == 0, "measured, but to be measured again"
    calm = {"foreign_share": 0.0, "steal_share": 0.0}
    assert cpu_run.objections(calm, 0.0) == []
    assert len(cpu_run.objections({"foreign_share": 0.2, "steal_share": 0.1}, 0.5)) == 3


# -- the device and the models -----------------------------------------------------------------------------------------


def test_caches_are_read_as_the_system_tells_them(tmp_path):
    for number, (level, kind, size, shared) in enumerate(((1, "Data", "48K", "0"), (1, "Instruction", "32K", "0"), (2, "Unified",
                                                                                                                    "2048K", "0"),
                                                          (3, "Unified", "30M", f"0-{os.cpu_count() - 1}"))):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
            (folder / name).write_text(f"{value}\n")
    assert machine.caches(tmp_path) == {"l1_bytes": 48 << 10, "l2_bytes": 2 << 20, "l3_bytes": 30 << 20}
    assert machine.caches(tmp_path / "none") == {"l1_bytes": 0, "l2_bytes": 0, "l3_bytes": 0}


def test_a_models_operators_come_first(monkeypatch):
    monkeypatch.setenv("STOKER_FAKE_CPU", "1")
    step = {"dimensions": [{"name": "batch", "default": 4}],
            "types": [["f32", [{"batch": 1}, 3, 8, 8]], ["f32", [16, 3, 3, 3]], ["f32", [{"batch": 1}, 16, 4, 4]], ["f32", [10,
                                                                                                                            256], [1, 0]],
                      ["f32", [{"batch": 1}, 256]], ["f32", [256, 10], [1, 0]], ["f32", [{"batch": 1}, 10]], ["f32", [10]]],
            "strings": {"operators": ["aten::convolution", "aten::addmm", "aten::relu", "aten::unheard_of", "aten::convolution_backward"]},
            "parameters": [{"type": 1, "requires_grad": True}],
            "events": [["p", "forward"], ["o", 0, 0, 0, [0, 1, 1, 2], [2, 3], {"stride": [2, 2], "padding": [1, 1], "groups": 1}],
                       ["o", 2, 0, 0, [2, 3], [2, 4]], ["o", 1, 0, 0, [7, 5, 4, 6, 5, 7], [6, 8]], ["o", 3, 0, 0, [2, 3], [2, 4]],
                       ["o", 4, 0, 0, [2, 3, 0, 1, 1, 2], [1, 9], {"stride": [2, 2], "padding": [1, 1], "mask": [False, True, False]}]]}
    found = wanted.specs_of(step)
    labels = {spec.label(s) for s in found}
    assert "convolution batch=4 in_channels=3 out_channels=16 groups=1 height=8 width=8 kernel=3 stride=2 padding=1 forward" in labels
    assert "addmm m=4 n=10 k=256 transpose_b=1 bias=1 forward" in labels and "relu elements=1024 inputs=1 forward" in labels
    assert sum("convolution_backward" in text for text in labels) == 1 and any(text.startswith("addcdiv_ elements=432 ") for text in labels)
    merged = wanted.ordered([step])
    assert {s.key() for s in merged[:len(found)]} == {s.key() for s in found} and len(merged) > len(general.everything())


def test_pooling_of_a_capture_is_told_by_its_window():
    x, out = ("f32", (2, 8, 16, 16), None), ("f32", (2, 8, 8, 8), None)
    window = {"kernel": [3, 3], "stride": [2, 2], "padding": [1, 1]}
    (forward,) = wanted.spec_of("max_pool2d_with_indices", [x], [out, ("i64", (2, 8, 8, 8), None)], window)
    assert dict(forward.sizes) == {"elements": 1024, "kernel": 3, "stride": 2} and forward.dims == (2, 8, 16, 1)
    (backward,) = wanted.spec_of("max_pool2d_with_indices_backward", [out, x, ("i64", (2, 8, 8, 8), None)], [x], window)
    assert backward.size("elements") == 4096 and backward.pass_ == "backward"
    (whole,) = wanted.spec_of("avg_pool2d", [x], [("f32", (2, 8, 4, 4), None)], {"kernel": [4, 4]})
    assert whole.size("stride") == 4, "the window's own, where no stride is given"


def test_broadcast_operands_are_told_by_their_channels():
    assert wanted._broadcast((8, 16, 4, 4), (16, 1, 1)) == (8, 16, 16) and wanted._broadcast((6, 32), (32,)) == (6, 32, 1)
    assert wanted._broadcast((8, 16, 4, 4), (8, 16, 1, 1)) == (1, 128, 16), "a gate for each channel of each picture"
    assert wanted._broadcast((2, 3, 5), (2, 1, 5)) == () and wanted._broadcast((2, 3), (1,)) == ()


def test_threads_and_budgets_that_cannot_be_are_refused():
    assert options.threads_of("", 8) == [1, 8] and options.threads_of("2,1", 8) == [1, 2] and options.threads_of("", 1) == [1]
    for text in ("0", "one", "9", "1,,2"):
        with pytest.raises(CaptureError, match="--threads"):
            options.threads_of(text, 8)


def test_an_interrupt_that_a_callback_swallowed_is_not_lost(monkeypatch):
    budget = budgets.Budget(60)
    budget.check_interrupts()
    monkeypatch.setattr(signals, "_interrupts", signals.interrupts() + 1)
    with pytest.raises(KeyboardInterrupt):
        budget.check_interrupts()
    budgets.Budget(60).check_interrupts()


def test_figures_are_told_from_nets_of_known_operators(monkeypatch):
    once = cpu_figures._per_call
    monkeypatch.setattr(cpu_figures, "_per_call", lambda run: min(once(run) for _ in range(7)))  # a neighbour only ever adds
    dispatch = cpu_figures.Dispatch()
    assert dispatch.optimizer_operators > 8 * cpu_figures._CHAIN, "AdamW's operators on each tensor"
    assert dispatch.call_us() > 0 and dispatch.step_us() > dispatch.forward_us() > dispatch.view_us() / 4 > 0


def test_a_living_helpers_time_is_no_others():
    helper = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        load, deadline = contention.Load(helper=lambda: helper.pid), time.monotonic() + 30
        while processes.cpu_seconds(helper.pid) < 0.3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert load._usage()["own"] - load.mark["own"] >= 0.2 and processes.cpu_seconds(0) == 0
    finally:
        helper.kill()
        helper.wait()



def test_rows_agree_with_what_a_plain_loop_takes(pool):
    """Not how long, only that both say the same to a factor."""
    wanted_spec = spec.spec("gemm", "mm", m=128, n=128, k=128)
    timed = rounds.Timed(wanted_spec, operators.build(wanted_spec, pool))
    with torch.no_grad():
        rounds.set_threads(1)
        timed.warm_up(1)
        a, b = torch.rand(128, 128), torch.rand(128, 128)
        plain = []
        for _ in range(9):
            begin = time.perf_counter()
            for _ in range(20):
                torch.mm(a, b)
            plain.append((time.perf_counter() - begin) / 20 * 1e6)
        ours = statistics.median(timed.read(1) for _ in range(9))
    assert 0.2 < ours / statistics.median(plain) < 5
