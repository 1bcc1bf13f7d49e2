"""What the parts of scripts/fit-timing share: which rows a fit may see, and offsets of single convolutions."""

import importlib
import math
import pathlib
import re
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"


def part(monkeypatch, name):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.delitem(sys.modules, "fit_timing", raising=False)
    return importlib.import_module(f"fit_timing.{name}")


def test_a_fit_without_a_gpu_sees_no_board_of_its_chip(monkeypatch):
    context = part(monkeypatch, "common").Context("data", "tools", without_gpu="A100-PCIe-40GB")
    boards = ("A100-PCIe-40GB", "A100-PCIe-80GB", "A100-SXM4-80GB")
    assert [context.sees(gpu) for gpu in boards] == [False, False, False]
    assert context.sees("V100-PCIe-32GB") and context.sees("RTX3090")


def test_a_fit_of_all_sees_a_gpu_that_the_catalogue_lacks(monkeypatch):
    common = part(monkeypatch, "common")
    assert common.Context("data", "tools").sees("unheard-of")
    assert not common.Context("data", "tools", without_gpu="unheard-of").sees("unheard-of")


@pytest.mark.parametrize(
    ("gpu", "operator", "span"),
    [("P4", "conv", 740_000), ("A100-PCIe-80GB", "conv", 300_000), ("P4", "linear", 0), ("H100-SXM5-80GB", "conv", 0)],
)
def test_rows_of_convolutions_alone_hold_an_offset(monkeypatch, gpu, operator, span):
    rows = part(monkeypatch, "operator_rows")
    assert rows.offset_span(rows.Row(gpu, operator, "text", 1.0)) == span


def test_an_offset_puts_the_forecast_at_the_geometric_mean_of_the_ends(monkeypatch):
    rows = part(monkeypatch, "operator_rows")
    assert math.isclose(rows.with_offset(100.0, 300.0), 200.0)
    assert rows.with_offset(100.0, 0.0) == 100.0


def test_the_bench_adds_the_offsets_that_the_fit_takes_out(monkeypatch):
    text = (SCRIPTS.parent / "bench/accuracy/time/row_offset.cc").read_text()
    spans = {gpu: float(span) for gpu, span in re.findall(r'\{"([^"]+)", (\d+)\}', text)}
    assert spans == part(monkeypatch, "operator_rows").OFFSET_US


def test_only_shares_of_the_data_sheet_end_at_it(monkeypatch):
    common = part(monkeypatch, "common")
    assert common.most("gemm.compute") == common.most("softmax.memory") == 1.0
    assert common.most("winograd.memory") == 10.0
    assert all(common.most(name) == math.inf for name in ("host.library_us", "power.pj_8nm", "kernel.floor_us", "speed.Xeon"))
    found = common.descend(lambda patch: abs(math.log(patch["host.library_us"] / 30)), {"host.library_us": 24.0}, step=0.2, least=0.001)
    assert found["host.library_us"] == pytest.approx(30, rel=0.01)


def test_a_pull_keeps_what_rows_do_not_tell_at_its_start(monkeypatch):
    operators = part(monkeypatch, "operators")
    times = operators.Times.__new__(operators.Times)
    times.measured, times.predict = [1.0], lambda patch: [1.0]
    start = {"winograd.memory": 0.8}
    assert times.loss(start, start) == 0
    assert times.loss({"winograd.memory": 0.8 * math.e}, start) == pytest.approx(operators.PULL)


def test_a_forest_takes_the_place_of_its_family_and_chips_or_comes_last(monkeypatch, tmp_path):
    tree_file = part(monkeypatch, "tree_file")
    path = tmp_path / "some.trees"

    def forest(family, chips, fill):
        return {"family": family, "chips": chips, "fold": -1, "trees": 1, "nodes": 1}, bytes([fill]) * 12

    def write(forests):
        head = (b'{"forests": [' + b", ".join(repr(entry).replace("'", '"').encode() for entry, _ in forests) + b"]}\n")
        tree_file.write_body(path, head, b"".join(data for _, data in forests))

    write([forest("rows", ["*"], 1), forest("convolution", ["GA100"], 2)])
    tree_file.replace_forest(path, forest("convolution", ["*"], 3))
    tree_file.replace_forest(path, forest("rows", ["*"], 4))
    header, data = tree_file.read_body(path)
    assert [(e["family"], e["chips"]) for e in header["forests"]] == [("rows", ["*"]), ("convolution", ["GA100"]), ("convolution", ["*"])]
    assert data == bytes([4]) * 12 + bytes([2]) * 12 + bytes([3]) * 12
    tree_file.drop_chip(path, "GA100")
    assert tree_file.read_body(path)[0]["forests"][1]["chips"] == [""]
    first = path.read_bytes().split(b"\n", 1)
    assert int(first[0].split()[2], 16) == tree_file.checksum(first[1])


def test_the_width_of_an_all_reduce_is_that_of_sizes_left_out(monkeypatch):
    collectives = part(monkeypatch, "collectives")
    assert collectives.ninety([i / 100 for i in range(101)]) == 0.9
    rows = [(size * collectives.MIB, 20 + 4 * size) for size in range(1, 1025)]
    assert [width for _, width in collectives.spreads_of(rows)] == [0, 0, 0, 0]  # straight lines leave nothing open
    bent = [(size, time * (1.05 if size // collectives.MIB % 2 and size < 8 * collectives.MIB else 1)) for size, time in rows]
    small, *larger = (width for _, width in collectives.spreads_of(bent))
    assert small > 0.02 and max(larger) < 0.01
