"""What stoker.measure says of a machine: affinity, quotas and limits of control groups of both versions, processor and caches."""

import json
import os
import sys

import pytest

from limits import limited_to
from stoker.measure import cgroup, machine

CPUINFO = ("processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\ncpu MHz\t\t: 2000.5\n\n"
           "processor\t: 1\nmodel name\t: Other\ncpu MHz\t\t: 2100.0\n")
MEMINFO = "MemTotal:       16000000 kB\nMemAvailable:    9000000 kB\n"
V1 = ("30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
V2 = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def tree(**more):
    """A reader of a made-up system's files."""
    files = {"/proc/cpuinfo": CPUINFO, "/proc/meminfo": MEMINFO, "/sys/devices/system/cpu/online": "0-7\n",
             "/proc/self/status": "Name:\tx\nCpus_allowed_list:\t0-2,5\n", **more}
    return lambda path: files.get(path, "")


def version_1(**more):
    return tree(**{"/proc/self/mountinfo": V1, "/proc/self/cgroup": "4:cpu,cpuacct:/job/step\n3:memory:/job/step\n0::/\n", **more})


def version_2(**more):
    return tree(**{"/proc/self/mountinfo": V2, "/proc/self/cgroup": "0::/job/step\n", **more})


def test_a_machine_without_limits_is_what_the_system_says():
    here = machine.read(tree())
    assert here == machine.Machine(cpu_name="Some CPU @ 2.00GHz", clock_mhz=2100.0, online_cores=8, affinity_cores=4, quota_cores=None,
                                   memory_bytes=16_000_000 << 10)
    assert here.usable_cores == 4.0 and here.whole_cores == 4


@pytest.mark.parametrize("make, folder, names", [
    (version_1, "/sys/fs/cgroup/cpu,cpuacct", ("cpu.cfs_quota_us", "cpu.cfs_period_us")), (version_2, "/sys/fs/cgroup", ("cpu.max",))])
def test_the_least_quota_on_the_way_up_counts(make, folder, names):
    def files(quota, period=100000):
        return (str(quota), str(period)) if len(names) == 2 else (f"{quota} {period}",)

    def placed(where, quota):
        return {f"{folder}{where}/{name}": text + "\n" for name, text in zip(names, files(quota))}

    assert machine.read(make(**placed("/job/step", 150000))).usable_cores == 1.5
    assert machine.read(make(**placed("/job/step", 300000), **placed("/job", 250000))).usable_cores == 2.5
    assert machine.read(make(**placed("", 50000))).whole_cores == 1
    assert machine.read(make(**placed("/job/step", 900000))).usable_cores == 4.0, "the affinity is less"
    assert machine.read(make(**placed("/job/step", "max" if len(names) == 1 else -1))).quota_cores is None
    assert machine.read(make(**placed("/elsewhere", 50000))).quota_cores is None


@pytest.mark.parametrize("make, limit, used", [
    (version_1, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "/sys/fs/cgroup/memory/job/memory.usage_in_bytes"),
    (version_2, "/sys/fs/cgroup/job/memory.max", "/sys/fs/cgroup/job/memory.current")])
def test_a_limit_of_memory_counts_where_it_is_less(make, limit, used):
    files = make(**{limit: "4294967296\n", used: "1073741824\n"})
    assert machine.read(files).memory_bytes == 4 << 30 and cgroup.memory_limit(files) == (4 << 30, 1 << 30)
    assert machine.read(make(**{limit: "9223372036854771712\n"})).memory_bytes == 16_000_000 << 10, "version 1's word for none"
    assert machine.read(make(**{limit: "max\n"})).memory_bytes == 16_000_000 << 10


def test_in_a_container_the_mount_point_is_the_own_group():
    within = {"/proc/self/cgroup": "0::/docker/abc\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n"}
    mounted = V2.replace(" / /sys/fs/cgroup ", " /docker/abc /sys/fs/cgroup ")
    assert machine.read(tree(**within, **{"/proc/self/mountinfo": mounted})).quota_cores == 0.5
    outside = {**within, "/proc/self/cgroup": "0::/../..\n"}
    assert machine.read(tree(**outside, **{"/proc/self/mountinfo": V2})).quota_cores == 0.5


@pytest.mark.parametrize("text, count", [("0-3,8\n", 5), ("0", 1), ("", 0), ("none", 0), ("2-2", 1)])
def test_lists_of_processors_are_counted(text, count):
    assert machine.count_cpus(text) == count


def test_a_processor_without_a_model_name_has_another():
    assert machine.cpu_name_in("Hardware\t: BCM2835\n") == "BCM2835"
    assert machine.cpu_name_in("") != "" or os.uname().machine == ""


def test_this_machine_agrees_with_what_python_sees():
    here = machine.read()
    assert here.affinity_cores == len(os.sched_getaffinity(0)) and 0 < here.usable_cores <= here.affinity_cores <= here.online_cores
    assert 0 < machine.available_memory() <= here.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert machine.read().affinity_cores == machine.read().whole_cores == 1
    finally:
        os.sched_setaffinity(0, before)


# -- the binary as the source ----------------------------------------------------------------------------------------------

TOLD = {"schema": 1, "cpu_name": "Told CPU", "clock_mhz": 3000.0, "logical_cores": 16, "affinity_cores": 8, "quota_cores": 2.5,
        "cores": 2.5, "memory_bytes": 8 << 30}


@pytest.fixture
def binary(tmp_path, monkeypatch):
    """Makes a binary that prints a text and ends with a code."""
    def make(text, code=0):
        path = tmp_path / "stoker-binary"
        path.write_text(f"#!/bin/sh\n[ \"$*\" = 'machine --seconds 0 --json' ] || exit 9\ncat <<'END'\n{text}\nEND\nexit {code}\n")
        path.chmod(0o755)
        monkeypatch.setenv("STOKER_BINARY", str(path))
    return make


def test_the_binary_is_asked_first(binary):
    binary(json.dumps(TOLD))
    found = machine.asked()
    assert found == machine.Machine("Told CPU", 3000.0, 16, 8, 2.5, 8 << 30) and found.usable_cores == 2.5 and found.whole_cores == 3
    machine.this.cache_clear()
    try:
        assert machine.this() == found and machine.usable_cores() == 2.5 and machine.memory_bytes() == 8 << 30
    finally:
        machine.this.cache_clear()


@pytest.mark.parametrize("text, code", [("", 2), ("no JSON", 0), ("{}", 0), (json.dumps({**TOLD, "memory_bytes": None}), 0),
                                        (json.dumps(TOLD), 1)])
def test_without_an_answer_the_facts_are_read_here(binary, text, code):
    binary(text, code)
    assert machine.asked() is None


def test_without_a_binary_the_facts_are_read_here(monkeypatch):
    monkeypatch.setenv("STOKER_BINARY", "/nowhere/stoker")
    assert machine.asked() is None


def test_the_built_binary_and_python_agree(with_binary):
    told = machine.asked()
    if told is None:
        pytest.skip("this binary has no verb machine")
    here = machine.read()
    assert (told.cpu_name, told.affinity_cores, told.quota_cores, told.memory_bytes, told.online_cores) == (
        here.cpu_name, here.affinity_cores, here.quota_cores, here.memory_bytes, here.online_cores)


# -- real limits -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def limited():
    """Runs a script under limits of 1.5 cores and 4 GiB, on the cores that are given; its JSON."""
    with limited_to(1.5, 4 << 30) as run:
        def told(script, cores):
            done = run([sys.executable, "-c", script], cores)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        yield told


def test_real_limits_are_seen_and_a_calibration_goes_on_under_them(limited, tmp_path):
    pytest.importorskip("torch")
    from stoker.calibrate import cpu_device, rows

    path = tmp_path / "cal.json"
    rows.write(rows.empty(cpu_device.describe(), rows.provenance()), str(path))
    both = sorted(os.sched_getaffinity(0))[:2]
    script = (f"import json; from stoker.calibrate import cpu_device, rows; device = cpu_device.describe()\n"
              f"file = rows.begun({str(path)!r}, device, rows.provenance()); print(json.dumps(file['device']))")
    device = limited(script, both)
    assert device["memory_bytes"] == 4 << 30 and device["cores"] == min(2, len(both)), "1.5 cores keep two threads busy"
    facts = ("import json; from stoker.measure import machine; here = machine.this(); "
             "print(json.dumps([here.usable_cores, here.quota_cores]))")
    assert limited(facts, both) == [min(1.5, len(both)), 1.5]
    assert limited(facts, both[:1]) == [1.0, 1.5]
