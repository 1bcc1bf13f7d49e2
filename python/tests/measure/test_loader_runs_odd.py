"""Timing DataLoaders where something is missing or fails: said in one sentence, with the cure."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

from stoker.errors import CaptureError, UserCodeError  # noqa: E402
from stoker.loader_runs import rows, runner, scenarios  # noqa: E402
from stoker.measure import forked  # noqa: E402


def test_rows_that_cannot_be_written_are_said(tmp_path):
    for path in (tmp_path / "none" / "rows.json", "/dev/fd/987654"):
        with pytest.raises(CaptureError, match="cannot be written.*--out"):
            rows.write({"scenarios": []}, str(path))


def test_points_are_read_before_anything_is_measured(tmp_path):
    damaged = tmp_path / "points.json"
    damaged.write_text(json.dumps([{"scenario": "tokens", "worker": 2}]))
    options = runner.parser().parse_args(["--out", str(tmp_path / "rows.json"), "--points", str(damaged)])
    with pytest.raises(CaptureError, match="each point is an object"):
        runner.Run(options, print)


def test_the_users_own_frames_come_out_of_the_child():
    def fails():
        raise UserCodeError("no", "Traceback (your frames): train.py, line 3")

    found = forked.in_child(fails, 30)
    assert found["trace"] == "Traceback (your frames): train.py, line 3\n"


def test_pictures_of_ones_own_are_named_by_a_variable(monkeypatch, tmp_path):
    pytest.importorskip("PIL.Image")
    monkeypatch.delenv(scenarios.PICTURES, raising=False)
    with pytest.raises(scenarios.Skipped, match="STOKER_PICTURES names no folder"):
        scenarios.imagenet(str(tmp_path))
    monkeypatch.setenv(scenarios.PICTURES, str(tmp_path))
    for number in range(32):
        with pytest.raises(scenarios.Skipped, match="fewer than 32"):
            scenarios.imagenet(str(tmp_path))
        (tmp_path / f"{number}.{'JPEG' if number % 2 else 'jpg'}").write_bytes(b"x")
    assert len(scenarios.imagenet(str(tmp_path)).files) == 32
