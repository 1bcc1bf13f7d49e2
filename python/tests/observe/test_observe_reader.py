"""read_observation: every kind of damage, and the summary."""

import json
import pathlib
import random

import pytest

import stoker
from observing import Clock, observer
from stoker import cli
from stoker.observe import summary as summaries

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "docs/schema"


def recording(tmp_path, steps=60, wait=1, compute=9, other=0, samples=32):
    """A file of steps with known times, in ms."""
    clock = Clock()
    recorder = observer(tmp_path, clock=clock, batch=samples)

    def loader():
        for _ in range(steps):
            clock.ms(wait)
            yield None

    for _ in recorder.batches(loader()):
        with recorder.step():
            with recorder.phase("forward"):
                clock.ms(compute / 3)
            with recorder.phase("backward"):
                clock.ms(compute * 2 / 3)
        clock.ms(other)
    recorder.close()
    return recorder.path


def edit(path, change):
    """Rewrites a file's lines."""
    text = open(path, encoding="utf-8").read().splitlines()
    changed = change(text)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(text if changed is None else changed) + "\n")
    return path


def row_lines(path):
    return [number for number, line in enumerate(open(path, encoding="utf-8")) if line.startswith("[")]


def test_a_whole_file(tmp_path):
    found = stoker.read_observation(recording(tmp_path))
    assert len(found.rows) == 60 and not found.damaged and not found.truncated
    assert found.end == {"steps": 60, "lost": 0, "write_ns": 0, "notes": {}}
    assert found.phases[:3] == ["other", "wait", "h2d"] and not found.on_device


@pytest.mark.parametrize("line, why", [
    ("nonsense", "not JSON"), ("[1,2", "not JSON"), ("", "not JSON"), ("3", "neither a row nor an object"), ("{}", "neither"),
    ("[1,2,3]", "3 values under 19 columns"), ("[NaN]", "not JSON"), ("[" * 100_000, "not JSON"),
    ("9" * 5000, "not JSON"), ("[" + "1," * 600_000 + "1]", "a line of"),
    ('{"memory":{"step":"x"}}', "step is missing or no whole number"), ('{"memory":{"step":1,"rss":-4}}', "memory.rss"),
    ('{"memory":3}', "memory is no object"), ('{"exception":{"step":1}}', "exception.type"), ('{"block":0}', "rows is missing"),
    ('{"end":{"steps":1,"lost":0,"write_ns":0,"notes":4}}', "end.notes")])
def test_damaged_lines_are_listed_and_left_out(tmp_path, line, why):
    path = recording(tmp_path)
    at = row_lines(path)[30]
    edit(path, lambda lines: lines[:at] + [line] + lines[at:])
    found = stoker.read_observation(path)
    assert len(found.rows) == 60
    assert [(damage.file, damage.line) for damage in found.damaged] == [(path, at + 1)]
    assert why in str(found.damaged[0]) and str(found.damaged[0]).startswith(f"{path}:{at + 1}: ")


@pytest.mark.parametrize("column, value, why", [
    ("step", 3, "comes after step"), ("kind", "test", "kind 'test'"), ("end", None, "end None"), ("wait_ns", -1, "wait_ns is -1"),
    ("wait_ns", 1.5, "wait_ns is 1.5"), ("total_ns", None, "total_ns is None"), ("samples", True, "samples is True"),
    ("forward_ns", 1, "the phases add up to"), ("gap_ns", 2**63, "gap_ns"), ("step", "7", "step is '7'")])
def test_rows_with_impossible_values(tmp_path, column, value, why):
    path = recording(tmp_path)
    at = row_lines(path)[30]
    columns = stoker.read_observation(path).header["columns"]

    def change(lines):
        row = json.loads(lines[at])
        row[columns.index(column)] = value
        lines[at] = json.dumps(row)

    found = stoker.read_observation(edit(path, change))
    assert len(found.rows) == 59 and len(found.damaged) == 1
    assert found.damaged[0].line == at + 1 and why in found.damaged[0].why


def test_bytes_that_are_no_text(tmp_path):
    path = recording(tmp_path)
    data = open(path, "rb").read().split(b"\n")
    data[20] = b"\xff\x00" + data[20]
    open(path, "wb").write(b"\n".join(data))
    found = stoker.read_observation(path)
    assert [(damage.line, damage.why) for damage in found.damaged] == [(21, "not UTF-8")]


def test_a_last_line_that_is_cut_off(tmp_path):
    path = recording(tmp_path)
    data = open(path, "rb").read()
    last_row = data.rindex(b"\n[")
    open(path, "wb").write(data[:last_row + 30])
    found = stoker.read_observation(path)
    assert found.truncated and not found.damaged and found.end is None and len(found.rows) == 59


def test_a_file_that_is_cut_off_anywhere_is_read_up_to_there(tmp_path):
    path = recording(tmp_path, steps=12)
    data = open(path, "rb").read()
    header = data.index(b"\n") + 1
    for length in range(header, len(data)):
        open(path, "wb").write(data[:length])
        found = stoker.read_observation(path)
        assert not found.damaged, (length, found.damaged)
        assert len(found.rows) in (data[:length].count(b"\n["), data[:length].count(b"\n[") - 1)


def test_rows_that_vanished_are_missed(tmp_path):
    path = recording(tmp_path)
    rows = row_lines(path)
    edit(path, lambda lines: [line for at, line in enumerate(lines) if at not in rows[20:23]])
    found = stoker.read_observation(path)
    assert "3 rows that their blocks announce are missing" in found.damaged[0].why


def test_random_damage_never_breaks_the_reader(tmp_path):
    path = recording(tmp_path, steps=20)
    data = open(path, "rb").read()
    header = data.index(b"\n") + 1
    chance = random.Random(7)
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 5)):
            damaged[chance.randrange(header, len(data))] = chance.randrange(256)
        open(path, "wb").write(damaged)
        found = stoker.read_observation(path)
        assert len(found.rows) <= 20 + 5
        found.summary()


@pytest.mark.parametrize("change, words", [
    (lambda h: h.update(format="other"), "no stoker-observation file"),
    (lambda h: h.update(schema_version=[2, 0]), r"schema_version is 2.0 and this stoker reads 1.x"),
    (lambda h: h.update(schema_version="1"), "major, minor"),
    (lambda h: h.pop("columns"), "columns has to be a list"),
    (lambda h: h["columns"].remove("wait_ns"), "columns lacks wait_ns"),
    (lambda h: h["columns"].append("step"), "different names"),
    (lambda h: h.update(timing="both"), "timing has to be"),
    (lambda h: h.update(timing="device"), "lacks device_gap_ns"),
    (lambda h: h.update(provenance=None), "provenance is missing"),
    (lambda h: h.update(rank="0"), "rank is missing")])
def test_headers_that_are_refused(tmp_path, change, words):
    path = recording(tmp_path, steps=1)

    def rewrite(lines):
        header = json.loads(lines[0])
        change(header)
        lines[0] = json.dumps(header)

    edit(path, rewrite)
    with pytest.raises(stoker.ObservationError, match=words) as refused:
        stoker.read_observation(path)
    assert f"{path}:1: " in str(refused.value)


def test_later_minor_versions_are_read(tmp_path):
    path = recording(tmp_path, steps=20)

    def later(lines):
        header = json.loads(lines[0])
        header["schema_version"] = [1, 7]
        header["columns"].append("temperature")
        lines[0] = json.dumps({**header, "new": 1})
        for at, line in enumerate(lines):
            if line.startswith("["):
                lines[at] = line[:-1] + ",40]"
        lines.insert(3, '{"clocks":{"sm_mhz":1400}}')

    found = stoker.read_observation(edit(path, later))
    assert len(found.rows) == 20 and not found.damaged and found.rows[3]["temperature"] == 40


@pytest.mark.parametrize("content, words", [("", "is empty"), ("\n\n", "is empty"), ("x\n", ":1: not JSON"), ("[1]\n",
                                                                                                              "no stoker-observation")])
def test_files_that_are_no_observations(tmp_path, content, words):
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(stoker.ObservationError, match=words):
        stoker.read_observation(path)


def test_no_file(tmp_path):
    with pytest.raises(stoker.ObservationError, match="cannot read .*no such file; check the path"):
        stoker.read_observation(tmp_path / "none.jsonl")


def test_the_summary_knows_the_times(tmp_path):
    s = stoker.read_observation(recording(tmp_path, steps=60, wait=1, compute=9, other=10)).summary()
    assert (s.recorded, s.warm_up, s.steps) == (60, 10, 50)
    assert s.step.median == s.step.p95 == s.step.mean == 20 and s.inside.median == 9
    assert s.samples_per_s == 1600 and s.samples_per_step == 32
    shares = {phase.name: round(phase.share, 6) for phase in s.phases}
    assert shares == {"other": 0.5, "wait": 0.05, "forward": 0.15, "backward": 0.3, "own": 0}


@pytest.mark.parametrize("steps, warm_up", [(0, 0), (4, 0), (5, 1), (49, 9), (50, 10), (1000, 10)])
def test_the_warm_up_rule(steps, warm_up):
    assert summaries.warm_up_of(steps) == warm_up


def test_percentiles_are_those_of_the_definition():
    assert summaries.percentile([4, 1, 3, 2, 5], 0.5) == 3
    assert summaries.percentile([1, 2], 0.95) == pytest.approx(1.95)
    assert summaries.percentile([7], 0.95) == 7


def said(capsys, *arguments):
    code = cli.main(["observation", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.mark.parametrize("times, words", [
    ({"wait": 5, "compute": 5}, ["10 ms", "The loop waits for data 50 % of the time", "3,200 samples/s", "stoker probe"]),
    ({"wait": 0.1, "compute": 9.9}, ["Computing takes 99 %, most of it backward (66 %)", "waiting for data takes 1.0 %", "stoker predict"]),
    ({"wait": 0.1, "compute": 5, "other": 5}, ["50 % of the time is outside all phases"])])
def test_the_answer_comes_first_and_the_next_step_last(tmp_path, capsys, times, words):
    code, out = said(capsys, recording(tmp_path, **times))
    lines = out.out.splitlines()
    assert code == 0 and out.err == ""
    assert lines[0].startswith("A step takes") and lines[-1].startswith("Next: ")
    for word in words:
        assert word in out.out


def test_json_carries_the_same_figures(tmp_path, capsys):
    code, out = said(capsys, recording(tmp_path), "--json")
    document = json.loads(out.out)
    assert code == 0 and document["step"]["median"] == 10 and document["header"]["format"] == "stoker-observation"
    schema = json.loads((SCHEMAS / "stoker-observation-1.json").read_text())
    assert document["schema"] == "stoker-observation-1" and set(schema["required"]) <= set(document) <= set(schema["properties"])
    assert document["phases"][1]["name"] == "wait" and "stoker" in document["next"]


def test_the_files_of_several_ranks(tmp_path, capsys):
    paths = []
    for rank, wait in enumerate((1, 5)):
        (tmp_path / str(rank)).mkdir()
        path = recording(tmp_path / str(rank), wait=wait)
        edit(path, lambda lines: [lines[0].replace('"rank":0,"ranks":1', f'"rank":{rank},"ranks":2')] + lines[1:])
        paths.append(path)
    code, out = said(capsys, *paths)
    assert code == 0
    assert out.out.startswith("2 recordings: the slowest step is rank 1's with 14 ms, the fastest rank 0's with 10 ms; rank 1 waits")
    assert out.out.count("A step takes") == 2
    code, out = said(capsys, *paths, "--json")
    assert [document["header"]["rank"] for document in json.loads(out.out)] == [0, 1]


def test_no_steps_are_said_to_be_none(tmp_path, capsys):
    recorder = observer(tmp_path)
    recorder.close()
    code, out = said(capsys, recorder.path)
    assert code == 1 and "0 steps. The loop never entered observer.step()" in out.out


def test_only_validation_is_no_training(tmp_path, capsys):
    recorder = observer(tmp_path)
    for _ in range(30):
        with recorder.step(validation=True):
            pass
    recorder.close()
    code, out = said(capsys, recorder.path)
    assert code == 1 and "none of its 30 steps can be judged" in out.out


def test_remarks_on_what_was_odd(tmp_path, capsys):
    path = recording(tmp_path)

    def odd(lines):
        header = json.loads(lines[0])["columns"]
        for at, end in zip(row_lines(path)[40:43], ("exception", "skipped", "unclosed")):
            row = json.loads(lines[at])
            row[header.index("end")] = end
            lines[at] = json.dumps(row)
        lines[-1] = '{"end":{"steps":60,"lost":5,"write_ns":0,"notes":{"nested_steps":2}}}'
        lines.insert(9, '{"exception":{"step":40,"type":"OutOfMemoryError"}}')
        lines.insert(9, "broken")

    code, out = said(capsys, edit(path, odd))
    assert code == 0
    for words in ("1 step aborted by an exception (OutOfMemoryError 1 time)", "1 step skipped by the gradient scaler",
                  "1 step never closed", "2 steps were opened within another", "5 steps were lost", f"damaged: {path}:10: not JSON"):
        assert words in out.out


def test_a_wall_clock_that_jumped_is_told(tmp_path, capsys):
    path = recording(tmp_path)

    def jump(lines):
        blocks = [at for at, line in enumerate(lines) if line.startswith('{"block"')]
        for at, wall in zip(blocks, (1000.0, 4600.0)):
            lines[at] = json.dumps({**json.loads(lines[at]), "wall_s": wall})

    assert "the wall clock moved by +3599" in said(capsys, edit(path, jump))[1].out


def test_bad_files_exit_with_three(tmp_path, capsys):
    code, out = said(capsys, tmp_path / "none.jsonl")
    assert code == 3 and out.err.startswith("stoker: cannot read") and out.out == ""
