"""The bookkeeping of tests/jobs: results are kept as they were measured, and the page says what they say."""

import json
import subprocess
import sys

import pytest

from places import REPOSITORY

JOBS = REPOSITORY / "tests" / "jobs"


@pytest.fixture
def jobs(monkeypatch):
    monkeypatch.syspath_prepend(str(JOBS))
    import cases
    import results
    import table

    yield cases, results, table
    for name in ("cases", "results", "table"):
        sys.modules.pop(name)


def test_the_page_is_what_the_results_say():
    done = subprocess.run([sys.executable, str(JOBS / "table.py"), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_page_that_says_otherwise_is_refused(tmp_path):
    page = tmp_path / "page.md"
    for flag, where, said, instead in (("--page", "docs/accuracy/watching.md", "127 of 129", "129 of 129"),
                                       ("--jobs", "data/measured/watch/README.md", "| healthy |", "| preparation_bound |")):
        text = (REPOSITORY / where).read_text()
        assert said in text
        page.write_text(text.replace(said, instead, 1))
        done = subprocess.run([sys.executable, str(JOBS / "table.py"), "--check", flag, str(page)], capture_output=True,
                              text=True, check=False)
        assert done.returncode != 0 and "run tests/jobs/table.py" in done.stderr


def test_results_are_read_as_they_were_written(jobs, tmp_path):
    cases, results, _ = jobs
    path = tmp_path / "jobs.json"
    found = results.load(path)
    found["machine"] = {"cores": 2}
    results.put(found, cases.CASES[5], "runs", 10, {"right": True, "waits": 1.5})
    results.put(found, cases.CASES[5], "runs", 2, {"right": False, "waits": None})
    results.put(found, cases.CASES[5], "cures", 1, {"held": True})
    results.save(path, found)
    assert results.load(path) == found
    assert list(json.loads(path.read_text())["cases"][cases.CASES[5].name]["runs"]) == ["2", "10"]


def test_what_is_no_results_file_is_refused(jobs, tmp_path):
    _, results, _ = jobs
    path = tmp_path / "jobs.json"
    path.write_text('{"format": "another"}')
    with pytest.raises(SystemExit, match="no results file"):
        results.load(path)


def test_shares_bands_and_verdicts_are_counted(jobs):
    _, _, table = jobs
    run = {"right": True, "first": "healthy", "waits": 3.0, "loop": 7.0, "rate": 20.0, "batches": 19.0}
    wrong = {**run, "right": False, "first": "cpu_quota", "loop": 9.0}
    cure = {"promised": [10, 5, 20], "gain": 21, "held": False}
    found = {"machine": {"cores": 2, "processor": "A", "kernel": "6", "python": "3", "torch": "2", "stoker": "1", "date": "d"},
             "cases": {"good": {"expected": [], "runs": {"1": run}},
                       "bad": {"expected": ["slow_samples"], "runs": {"1": run, "2": wrong}, "cures": {"1": cure},
                               "rival": {"says": "INPUT-BOUND", "version": "0.5.0"}}}}
    text = table.summary_text(found)
    assert "| planted cause named first | 1 of 2 (50 %) |" in text
    assert "| healthy jobs without a finding | 1 of 1 (100 %) |" in text
    assert "| share of waiting within 5 points of the loop's own | 2 of 3 (67 %) |" in text
    assert "| gain of the first cure within its band | 0 of 1 (0 %) |" in text
    assert "| TraceML 0.5.0, by job | input-bound 1 | |" in text
    text = table.jobs_text(found)
    assert "| bad | healthy, cpu_quota | **1 of 2** | 3 / 8 | +10 [5, 20] / +21, **missed** | input-bound |" in text
    assert "TraceML 0.5.0" in text
