"""Binary and Python under a real quota, a limit of memory and an affinity: one number of cores, and no machine is taken for another."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from limits import limited_to
from places import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden" / "files"
QUOTA_CORES, MEMORY = 0.5, 4 << 30
FACTS = """
import json
from stoker.calibrate import cpu_device
from stoker.measure import machine
from stoker.training_runs import facts
here = machine.this()
print(json.dumps({"cores": here.usable_cores, "calibrate": cpu_device.describe(), "validate": facts.device("cpu")}))
"""


@pytest.fixture
def limited():
    """Runs a command under limits of half a core and 4 GiB, on the processors that are given."""
    with limited_to(QUOTA_CORES, MEMORY) as run:
        yield run


def calibration(path, device):
    document = json.loads((GOLDEN / "cpu_calibration.json").read_text())
    document["device"].update(device)
    path.write_text(json.dumps(document))
    return path


def test_the_binary_sees_a_quota_a_limit_and_an_affinity(with_binary, limited):
    all_of_them = sorted(os.sched_getaffinity(0))
    for processors in (all_of_them, all_of_them[:1]):
        done = limited([with_binary, "machine", "--json", "--seconds", "0"], processors)
        found = json.loads(done.stdout)
        assert (found["cores"], found["quota_cores"], found["affinity_cores"]) == (QUOTA_CORES, QUOTA_CORES, len(processors))
        assert found["memory_bytes"] == found["memory_limit_bytes"] == MEMORY and found["cgroup_version"] == 1


def test_an_affinity_alone_is_seen(with_binary):
    first = {min(os.sched_getaffinity(0))}
    done = subprocess.run([with_binary, "machine", "--json", "--seconds", "0"], capture_output=True, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, first))
    found = json.loads(done.stdout)
    assert found["affinity_cores"] == 1 and found["cores"] == min(1.0, found["quota_cores"] or 1.0)


def test_calibrate_and_validate_agree_under_limits(with_binary, limited, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("STOKER_BINARY", str(with_binary))
    processors = sorted(os.sched_getaffinity(0))
    done = limited([sys.executable, "-c", FACTS], processors)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["cores"] == QUOTA_CORES and found["validate"]["cores"] == QUOTA_CORES
    assert found["calibrate"]["cores"] == 1, "half a core keeps one thread busy"
    assert found["calibrate"]["name"] == found["validate"]["name"]

    # A file that was calibrated on the whole machine is gone on with, and judged, under the limits.
    whole = {**found["calibrate"], "cores": 64, "memory_bytes": 512 << 30}
    machine = tmp_path / "cpu.toml"
    for rows, note in ((calibration(tmp_path / "whole.json", whole), False),
                       (calibration(tmp_path / "limited.json", found["calibrate"]), True)):
        done = limited([with_binary, "calibrate", rows, "-o", machine], processors)
        assert done.returncode == 0, done.stderr
        assert ("share of the machine changed" in " ".join(done.stdout.split())) == note
    rows = json.loads((GOLDEN / "training_rows.json").read_text())
    rows["device"] = found["validate"]
    rows["runs"][0]["model"] = str(tmp_path / "tiny_cpu.step.gz")
    shutil.copy(GOLDEN / "tiny_cpu.step.gz", tmp_path)
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    calibrated = limited([with_binary, "calibrate", tmp_path / "whole.json", "-o", machine], processors)
    assert calibrated.returncode == 0, calibrated.stderr
    done = limited([with_binary, "validate", tmp_path / "rows.json", "--machine", machine, "--json"], processors)
    assert done.returncode in (0, 1) and json.loads(done.stdout)["schema"] == "stoker-validate-1", done.stderr


def test_another_processor_is_another_machine(with_binary, tmp_path):
    machine = tmp_path / "cpu.toml"
    first = calibration(tmp_path / "first.json", {})
    assert subprocess.run([with_binary, "calibrate", first, "-o", machine], capture_output=True).returncode == 0
    for device in ({"name": "Another CPU"}, {"l2_bytes": 123 << 10}):
        other = calibration(tmp_path / "other.json", device)
        done = subprocess.run([with_binary, "calibrate", other, "-o", machine], capture_output=True, text=True)
        assert done.returncode == 3 and "another machine" in done.stderr, device
