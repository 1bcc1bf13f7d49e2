"""Real DataLoaders for the input validation: scenarios, the rule for throwing away, the rows file, nothing left behind."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from places import PYTHON, SUPPORT  # noqa: E402
from stoker.errors import CaptureError  # noqa: E402
from stoker.loader_runs import calibration, datasets, epoch, grid, judge, rows, runner, scenarios  # noqa: E402
from stoker.measure import contention, forked, page_cache, signals  # noqa: E402


def small(name, tmp_path):
    """A scenario with a pool of few samples."""
    made = {"small-records": scenarios.small_records, "tokens": scenarios.tokens, "recordings": scenarios.recordings,
            "tokens-bucketed": scenarios.tokens_bucketed, "one-slow": scenarios.one_slow,
            "small-files": scenarios.small_files}[name]
    if name == "small-files":
        pytest.importorskip("PIL")
    return made(str(tmp_path), pool=40)


@pytest.mark.parametrize("name", ["small-records", "small-files", "tokens", "tokens-bucketed", "recordings", "one-slow"])
def test_a_scenario_gives_the_same_samples_again_and_covers_its_pool(name, tmp_path):
    scenario = small(name, tmp_path)
    data = scenario.make(80)
    assert len(data) == 80 and scenario.pool == 40
    assert repr(data[3]) == repr(data[3])
    for point in (grid.point(scenario, batch=8, workers=0), grid.point(scenario, batch=8, workers=0, drop_last=True)):
        loader = scenario.loader(point, 80, 1)
        assert len(list(loader)) == len(loader) == 10


def test_pictures_are_decoded_cropped_and_normalised(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    paths = []
    for i, (width, height, mode) in enumerate([(640, 480, "RGB"), (50, 900, "L"), (224, 224, "CMYK")]):
        paths.append(str(tmp_path / f"{i}.jpg"))
        Image.new(mode, (width, height), 128).save(paths[-1])
    data = datasets.Pictures(paths, 7)
    for index in range(7):
        pixels, label = data[index]
        assert pixels.shape == (3, 224, 224) and str(pixels.dtype) == "torch.float32" and label == index
        assert pixels.is_contiguous() and -2.2 < pixels.min() <= pixels.max() < 2.7


def test_a_scenario_without_its_files_is_skipped_with_the_reason(monkeypatch, tmp_path):
    pytest.importorskip("PIL")
    monkeypatch.setattr(scenarios, "OPENCV_DOC", str(tmp_path))
    with pytest.raises(scenarios.Skipped, match="no JPEG files below"):
        scenarios.pictures(str(tmp_path))


def test_batches_of_like_length_hold_every_sample_once_and_pad_less(tmp_path):
    plain, bucketed = small("tokens", tmp_path), small("tokens-bucketed", tmp_path)
    sampler = datasets.ByLength(bucketed.make(80).lengths(), 80, 8, 1)
    batches = list(sampler)
    assert sorted(i for b in batches for i in b) == list(range(80)) and {len(b) for b in batches} == {8}

    def padding(scenario):
        masks = [b["mask"] for b in scenario.loader(grid.point(scenario, batch=8, workers=0), 80, 1)]
        return sum((~m).sum().item() for m in masks) / sum(m.numel() for m in masks)

    assert padding(bucketed) < 0.6 * padding(plain)


def test_the_grid_is_large_enough_and_names_no_point_twice(tmp_path):
    count = 0
    for name in scenarios.MAKERS:
        scenario = scenarios.Scenario(name, "", 48, 100, None)
        points = grid.full(scenario)
        assert len({grid.key(p) for p in points}) == len(points)
        assert [p["workers"] for p in points[:6]] == [0, 1, 2, 3, 4, 6], "the exhaustive search"
        assert grid.drawn(scenario, 3, 1) == grid.drawn(scenario, 3, 1) != grid.drawn(scenario, 3, 2)
        count += len(points)
    assert count >= 60


def test_an_epoch_is_a_whole_number_of_pools_and_cold_files_are_read_once():
    scenario = scenarios.Scenario("pictures", "", 32, 240, None)
    usual = grid.samples_of(scenario, grid.point(scenario), 3.0)
    assert usual % 240 == 0 and 1 < usual * 3e-3 / 2 < 4, "a second or two on two cores"
    assert grid.samples_of(scenario, grid.point(scenario, cold=True), 3.0) == 240
    assert grid.samples_of(scenario, grid.point(scenario, step_ms=500.0), 3.0) == 240


def test_of_two_probes_each_quantity_takes_its_better_value():
    def probe(cpu, ratio, collate, efficiency, fork, interval):
        return {"sample": {"cpu_ms": [cpu, cpu], "in_process_ratio": ratio}, "start": {"fork_ms": fork, "spawn_ms": None},
                "batch": [{"batch": 8, "bytes": 64, "collate_shared_ms": collate, "collate_private_ms": 1.0}],
                "parallel": {"processes": 2, "efficiency": efficiency}, "one_worker": {"interval_ms": interval}}

    found = calibration.better([probe(1.2, 1.0, 0.5, 0.95, 9.0, 12.0), probe(1.0, 1.5, 0.7, 0.8, 8.0, 11.0)])
    assert found["sample"]["cpu_ms"] == [1.0, 1.0] and found["sample"]["in_process_ratio"] == 1.2
    assert found["batch"][0]["collate_shared_ms"] == 0.5 and found["parallel"]["efficiency"] == 0.95
    assert found["start"] == {"fork_ms": 8.0, "spawn_ms": None} and found["one_worker"]["interval_ms"] == 11.0
    waits, missed = probe(1.0, 1.5, 0.5, 0.9, 9.0, 10.0), probe(1.1, 1.5, 0.5, 0.9, 9.0, 10.0)
    waits["sample"]["wait_ms"], missed["sample"]["wait_ms"] = [0.0, 2.0], [0.0, 0.0]
    assert calibration.better([missed, waits])["sample"]["wait_ms"] == [0.0, 2.0], "a probe that missed slow samples is no better"
    alone = probe(1.0, None, 0.5, 0.9, 9.0, 10.0)
    alone["parallel"] = None
    assert calibration.better([alone]) == alone


def test_a_point_is_settled_by_two_good_repetitions_that_agree():
    def point(*epochs):
        return {"repetitions": [{"epoch_ms": abs(e), "good": e > 0} for e in epochs]}

    assert rows.settled(point(1000, 1049), 2) and rows.settled(point(2000, 1000, -900, 1040), 2)
    assert not rows.settled(point(1000), 2) and not rows.settled(point(1000, 1051), 2)
    assert rows.settled(point(1000), 1) and not rows.settled(point(-1000), 1)


def test_a_repetition_is_thrown_away_by_the_stated_rule():
    assert judge.objections(0.02, 0.01, 1.04) == []
    assert len(judge.objections(0.04, 0.03, 0.94)) == 3
    assert judge.objections(0, 0, 1.06) != []
    before = {"wall": 10.0, "busy": 5.0, "steal": 1.0, "own": 2.0}
    cores = os.cpu_count()
    after = {"wall": 12.0, "busy": 5.0 + 1.5 * cores, "steal": 1.0 + 0.2 * cores, "own": 2.0 + 1.3 * cores}
    assert contention.between(before, after) == (pytest.approx(0.1), pytest.approx(0.1))


def test_evicted_files_leave_the_page_cache(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20))
    path.read_bytes()
    if page_cache.resident_share([str(path)]) < 0.5:
        pytest.skip("mincore tells nothing here")
    page_cache.evict([str(path)])
    if page_cache.resident_share([str(path)]) > 0.5:
        pytest.skip("this file system does not drop pages on request (tmpfs)")
    path.read_bytes()
    assert page_cache.resident_share([str(path)]) > 0.5


def test_a_rows_file_comes_back_as_it_was_and_damage_is_said(tmp_path):
    path = str(tmp_path / "rows.json")
    made = rows.empty()
    scenario = scenarios.Scenario("tokens", "", 32, 100, None)
    made["scenarios"].append({"name": "tokens", "what": "", "batches_differ": True, "probe": {"sample": {}},
                              "points": [{**grid.point(scenario), "samples": 100, "repetitions": []}]})
    rows.write(made, path)
    assert rows.read(path) == made and os.listdir(tmp_path) == ["rows.json"]
    pathlib.Path(path).write_text(pathlib.Path(path).read_text()[:-20])
    with pytest.raises(CaptureError, match="cannot be read as a rows file"):
        rows.read(path)
    pathlib.Path(path).write_text('{"format": "stoker-input-runs", "schema_version": [9, 0]}')
    with pytest.raises(CaptureError, match="no rows file of this version"):
        rows.read(path)


SCRIPT = """
import sys, json
from stoker.loader_runs import epoch, grid, scenarios
from stoker.measure import leftovers, reference, signals
with leftovers.Warden() as warden:
    print(warden.folder, flush=True)
    signals.adopt_orphans()
    scenario = scenarios.small_records(warden.folder, pool=64)
    kernel = reference.Kernel(reference.LOADING)
    ms = kernel.milliseconds()
    for settings in json.loads(sys.argv[1]):
        point = {**grid.point(scenario, batch=16, **settings), "samples": int(sys.argv[2])}
        print(json.dumps(epoch.repetition(scenario, point, 1, kernel, ms, warden)), flush=True)
"""


def start(settings, samples):
    env = dict(os.environ, PYTHONPATH=str(PYTHON))
    return subprocess.Popen([sys.executable, "-c", SCRIPT, json.dumps(settings), str(samples)], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_an_epoch_is_timed_and_its_shared_memory_counted(tmp_path):
    settings = [{"workers": 0}, {"workers": 2, "step_ms": 30.0}, {"workers": 1, "persistent": True}, {"workers": 1, "cold": True}]
    process = start(settings, 256)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    folder, *lines = out.splitlines()
    plain, stepped, persistent, _ = (json.loads(line) for line in lines)
    assert not os.path.exists(folder)
    assert plain["shm_bytes"] == 0 and plain["workers_cpu_ms"] == 0 and plain["main_cpu_ms"] > 0
    assert stepped["epoch_ms"] >= 16 * 30 and stepped["workers_cpu_ms"] > 0
    assert 0 < stepped["first_batch_ms"] < stepped["epoch_ms"] and stepped["interval_ms"] >= 30
    # Others may use /dev/shm meanwhile, so only the least is certain: the batch in the loop's hands and the next.
    assert stepped["shm_bytes"] >= 2 * 16 * 12288
    assert persistent["epoch_ms"] > 0
    assert all(set(r) >= {"foreign_share", "steal_share", "speed", "good", "why"} for r in (plain, stepped, persistent))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_stays_behind_when_it_is_killed(number):
    process = start([{"workers": 2, "step_ms": 100.0}], 6400)
    folder = process.stdout.readline().strip()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and len(_related(process.pid)) < 5:  # itself, keeper, epoch, two workers
        time.sleep(0.05)
    family = _related(process.pid)
    assert len(family) >= 5
    process.send_signal(number)
    process.communicate(timeout=30)
    while time.monotonic() < deadline and (os.path.exists(folder) or any(map(_alive, family))):
        time.sleep(0.1)
    assert not os.path.exists(folder) and [p for p in family if _alive(p)] == []


def run_loader_runs(*arguments):
    env = dict(os.environ, PYTHONPATH=str(PYTHON))
    return subprocess.Popen([sys.executable, "-m", "stoker", "loader-runs", *map(str, arguments)], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


OWN = f"{SUPPORT / 'loaders.py'}:loader"
BRIEF = ("--quick", "--probe-budget", "1s", "--budget", "60s")


def test_a_users_data_set_is_measured_and_the_file_can_be_continued(tmp_path):
    path = tmp_path / "rows.json"
    process = run_loader_runs("--pipeline", OWN, "--out", path, *BRIEF)
    _, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    (entry,) = (file := rows.read(str(path)))["scenarios"]
    assert entry["name"] == "loaders.py:loader" and entry["probe"]["format"] == "stoker-pipeline-probe"
    assert [(p["batch"], p["workers"]) for p in entry["points"]] == [(16, 0), (16, 1), (16, 2)]
    assert all(p["repetitions"] for p in entry["points"]) and file["needed"] == 1
    kept = [rows.good(p) for p in entry["points"]]
    process = run_loader_runs("--pipeline", OWN, "--out", path, *BRIEF)
    process.communicate(timeout=200)
    (again,) = rows.read(str(path))["scenarios"]
    assert again["probe"] == entry["probe"], "calibrated once"
    for before, point in zip(kept, again["points"]):
        assert rows.good(point)[:len(before)] == before, "what was good is kept"
        if before:
            assert len(rows.good(point)) == len(before), "and not measured again"


INTERRUPTED = """
import sys
from stoker.loader_runs import runner
whole = runner.Run.{where}
def interrupted(self, *arguments):
    if {late}:
        whole(self, *arguments)
    raise KeyboardInterrupt
runner.Run.{where} = interrupted
sys.exit(runner.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("where, late, kept", [("find_scenarios", False, 0), ("calibrate", False, 0), ("_probe", True, 0),
                                               ("calibrate", True, 1), ("wanted_points", True, 1)])
def test_ctrl_c_keeps_what_was_measured(tmp_path, where, late, kept):
    path = tmp_path / "rows.json"
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.format(where=where, late=late), "--pipeline", OWN, "--out", str(path), *BRIEF],
                          env=dict(os.environ, PYTHONPATH=str(PYTHON)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 130, done.stderr
    if kept:
        assert len(rows.read(str(path))["scenarios"]) == kept and f"so far is in {path}" in done.stderr
    else:
        assert not path.exists() and "before anything was measured" in done.stderr


@pytest.mark.parametrize("function", ["stream", "sampled"])
def test_an_order_of_its_own_is_kept_and_epochs_are_left_early(tmp_path, function):
    scenario = scenarios.own(f"{SUPPORT / 'loaders.py'}:{function}")
    assert scenario.cut
    point = {**grid.point(scenario, workers=2), "batch": scenario.batch, "cores": 1}
    first = next(iter(scenario.loader(point, 0, 1)))
    assert (first[0] if function == "stream" else first[1][0]) == (0 if function == "stream" else 1)
    samples = grid.cut_samples(point, 1.0, 100, .25)
    assert samples % point["batch"] == 0 and 0 < samples <= 100


def test_an_epoch_that_ends_too_early_is_an_error(tmp_path):
    scenario = scenarios.own(f"{SUPPORT / 'loaders.py'}:sampled")
    point = {**grid.point(scenario), "workers": 0, "batch": 2, "cores": 1}
    assert forked.in_child(lambda: epoch.timed(scenario, point, 4, 1), 30)["epoch_ms"] > 0
    assert "ended after 2 of 3 batches" in forked.in_child(lambda: epoch.timed(scenario, point, 6, 1), 30)["error"]


def test_a_function_that_is_not_there_is_refused(tmp_path):
    process = run_loader_runs("--pipeline", f"{SUPPORT / 'loaders.py'}:nothing", "--out", tmp_path / "r.json")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3 and "has no function 'nothing'" in error and "Traceback" not in error
    assert os.listdir(tmp_path) == []


def test_an_unknown_scenario_and_a_budget_that_is_no_time_are_refused(tmp_path):
    for arguments, says in ((("--scenario", "picture"), "choose from pictures"), (("--budget", "soon"), "such as 90s")):
        process = run_loader_runs("--out", tmp_path / "r.json", *arguments)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 3 and says in error


def test_files_that_cannot_be_used_are_named(tmp_path):
    for arguments, says in ((("--out", tmp_path / "none" / "r.json"), "no folder"),
                            (("--out", tmp_path / "r.json", "--points", tmp_path / "p.json"), "No such file")):
        process = run_loader_runs("--pipeline", OWN, *arguments, "--quick", "--probe-budget", "1s", "--budget", "20s")
        _, error = process.communicate(timeout=100)
        assert process.returncode == 3 and says in error and "bug in stoker" not in error, error
    damaged = tmp_path / "damaged.json"
    damaged.write_text('[{"scenario": "tokens", "worker": 2}]')
    with pytest.raises(CaptureError, match="each point is an object"):
        runner._listed(str(damaged))


def test_a_users_worker_init_and_whole_batches_are_kept():
    class Whole:
        def __len__(self):
            return 10

        def __getitem__(self, index):
            raise AssertionError("made one by one")

        def __getitems__(self, indices):
            return [index * 2 for index in indices]

    part = datasets.part_of(Whole(), 25)
    assert len(part) == 25 and part.__getitems__([0, 9, 11]) == [0, 18, 2]
    assert not hasattr(datasets.part_of([1, 2, 3], 2), "__getitems__")
    scenario = scenarios.own(OWN)
    assert scenario.batch == 16 and scenario.worker_init is not None
    loader = scenario.loader(grid.point(scenario, workers=1), 32, 1)
    assert loader.worker_init_fn is scenario.worker_init


@pytest.mark.parametrize("number, raised", [
    (signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)])
def test_a_signal_during_a_fork_is_not_lost(number, raised):
    once = []

    def signalled():  # exceptions of such callbacks are written to stderr and forgotten; torch and logging have some
        if not once:
            once.append(True)
            os.kill(os.getpid(), number)

    before = signal.signal(number, signal.default_int_handler)  # not ignored, whatever started the tests
    os.register_at_fork(after_in_parent=signalled)
    try:
        with pytest.raises(raised) as ending, signals.ending_cleanly():
            forked.in_child(lambda: {"made": True}, 20)
    finally:
        signal.signal(number, before)
    assert raised is KeyboardInterrupt or ending.value.code == 128 + number
    assert forked.in_child(lambda: {"made": True}, 20) == {"made": True}


def test_a_signal_lost_elsewhere_is_raised_at_the_end():
    with pytest.raises(SystemExit) as ending, signals.ending_cleanly():
        with contextlib.suppress(SystemExit):
            os.kill(os.getpid(), signal.SIGTERM)
    assert ending.value.code == 143


def test_an_interrupted_run_keeps_what_it_measured(tmp_path):
    path = tmp_path / "rows.json"
    process = run_loader_runs("--pipeline", OWN, "--out", path, *BRIEF[1:])
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:  # written after the calibration
        time.sleep(0.1)
    time.sleep(0.5)
    family = _related(process.pid)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130 and "interrupted; what was measured so far" in error
    while time.monotonic() < deadline and any(map(_alive, family)):
        time.sleep(0.1)
    assert [p for p in family if _alive(p)] == [] and os.listdir(tmp_path) == ["rows.json"]
    assert len(rows.read(str(path))["scenarios"]) == 1


def test_validation_of_a_users_data_set_prints_the_comparison(tmp_path, with_binary):
    env = dict(os.environ, PYTHONPATH=str(PYTHON), STOKER_PYTHON=sys.executable)
    path = tmp_path / "rows.json"
    done = subprocess.run([with_binary, "validate", "--input", OWN, "--quick", "--budget", "30s", "-o", str(path)], env=env,
                          text=True, capture_output=True, timeout=200)
    if done.returncode == 3:  # a busy machine: every repetition was thrown away
        assert "no measured point is left" in done.stderr
        pytest.skip("every repetition was thrown away: the machine is too busy to compare anything")
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.startswith("Forecasts beside ") and "loaders.py:loader: batch 16" in done.stdout
    again = subprocess.run([with_binary, "validate", "--input", str(path), "--json"], env=env, text=True,
                           capture_output=True, timeout=60)
    found = json.loads(again.stdout)
    assert again.returncode == done.returncode == (0 if found["reached"] else 1)
    assert found["points"] and found["dropped"] is not None


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _related(pid):
    """A process and its living descendants."""
    found = [pid]
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += _related(int(entry))
    return found
