"""Control groups of version 1 in which a test runs commands under real limits."""

import contextlib
import os
import pathlib
import subprocess

import pytest

from places import PYTHON


@contextlib.contextmanager
def limited_to(cores, memory_bytes):
    """A function (command, processors) that runs under these limits; skips the test where no groups can be made."""
    name = f"stoker-test-{os.getpid()}"
    groups = {pathlib.Path(f"/sys/fs/cgroup/cpu/{name}"): {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": int(cores * 100000)},
              pathlib.Path(f"/sys/fs/cgroup/memory/{name}"): {"memory.limit_in_bytes": memory_bytes}}

    def run(command, processors):
        def enter():
            for group in groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            os.sched_setaffinity(0, processors)

        return subprocess.run([str(word) for word in command], capture_output=True, text=True, preexec_fn=enter,
                              env={**os.environ, "PYTHONPATH": str(PYTHON)})

    with contextlib.ExitStack() as made:
        try:
            for group, limits in groups.items():
                group.mkdir()
                made.callback(group.rmdir)
                for file, value in limits.items():
                    (group / file).write_text(str(value))
        except OSError as error:
            pytest.skip(f"no control groups of version 1 can be made here ({error.strerror})")
        yield run
