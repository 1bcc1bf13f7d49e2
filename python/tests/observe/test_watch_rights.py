"""`stoker watch` of processes that this user may not fully see: another user's, a container's, those that /proc hides.

Each needs a right that is not had everywhere, root's as a rule, and is skipped without.
"""

import json
import os
import pwd
import shutil
import subprocess

import pytest

BINARY = os.environ.get("STOKER_BINARY")

pytestmark = [pytest.mark.skipif(not BINARY, reason="STOKER_BINARY names no binary"),
              pytest.mark.skipif(os.geteuid() != 0, reason="only root may change users and namespaces")]


def as_nobody(*command, **more):
    """Runs a command as a user without rights; skips where there is none, or where it cannot reach the binary."""
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("there is no user nobody")
    options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "capture_output": True, "text": True,
               "timeout": 120, "check": False, "cwd": "/", **more}
    try:
        if subprocess.run([BINARY, "--version"], **options).returncode != 0:
            pytest.skip("nobody cannot run the binary")
    except PermissionError:
        pytest.skip("nobody cannot reach the binary")
    return subprocess.run(list(map(str, command)), **options)


def child_of(pid):
    """The only child of a process."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        child, = file.read().split()
    return int(child)


@pytest.fixture
def contained():
    """The number, outside, of a process that has one of its own in a new pid namespace."""
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare")
    outer = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                              "sleep 101 & echo $!; wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    inner = outer.stdout.readline().strip()
    if not inner:
        reason = outer.stderr.read()
        outer.wait()
        pytest.skip(f"no pid namespace here: {reason}")
    yield child_of(outer.pid), int(inner)
    outer.kill()
    outer.wait()


def report_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_another_users_process_hides_is_named_and_is_not_called_healthy(sleeper):
    report = report_of(as_nobody(BINARY, "watch", sleeper.pid, "--seconds", "4", "--json"))
    hidden = " ".join(report["hidden"])
    assert "/proc/PID/io" in hidden
    if "/proc/PID/wchan" in hidden:  # some kernels tell everybody
        assert not report["healthy"]
        assert "may still lose time" in report["verdict"]


def test_a_containers_process_is_watched_by_its_number_outside(contained):
    shell, _ = contained
    done = subprocess.run([BINARY, "watch", str(shell), "--seconds", "4", "--json"], capture_output=True, text=True,
                          timeout=120, check=False)
    report = report_of(done)
    assert report["ranks"][0]["pid"] == child_of(shell)
    # A container may forbid its users to ask whose code runs (perf_event_open); /proc is theirs.
    assert not any("/proc/" in words for words in report["hidden"])


def test_a_number_from_within_a_container_leads_to_the_one_outside(contained):
    shell, inner = contained
    if os.path.exists(f"/proc/{inner}"):
        status = open(f"/proc/{inner}/status", encoding="utf-8").read()
        if "Kthread:\t1" not in status:
            pytest.skip(f"{inner} is a process outside too")
    done = subprocess.run([BINARY, "watch", str(inner)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert f"{child_of(shell)} (" in done.stderr and "within a container that number is process" in done.stderr


def test_a_watch_within_the_container_uses_its_numbers(contained):
    shell, inner = contained
    if not shutil.which("nsenter"):
        pytest.skip("there is no nsenter")
    done = subprocess.run(["nsenter", "-t", str(shell), "-p", "-m", BINARY, "watch", str(inner), "--seconds", "4",
                           "--json"], capture_output=True, text=True, timeout=120, check=False)
    assert report_of(done)["ranks"][0]["pid"] == inner


def test_what_proc_hides_is_refused_with_the_cure(sleeper):
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("there is no unshare or no setpriv")
    as_nobody("true")
    command = (f"mount -t proc -o hidepid=2 proc /proc || exit 77; cd /; exec setpriv --reuid=nobody --regid=65534 "
               f"--clear-groups {BINARY} watch {sleeper.pid}")
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(f"no mounts here: {done.stderr}")
    assert done.returncode == 3
    assert "hidepid" in done.stderr and "as root" in done.stderr
