"""The measured processes as the one that starts them sees them: begun, told when to go, waited for, ended."""

from __future__ import annotations

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

_PACKAGE = pathlib.Path(__file__).resolve().parents[2]
_WORDS = 400  # characters of what a process that died had printed last


class Cut(Exception):
    """The time was over before the process was; what it had is not used."""


def run(case: dict, deadline: float, folder: str, begin=lambda: None) -> dict:
    """The answer of one child (child.py). `begin` is called when it is ready to be timed, and waits.

    `deadline` is time.monotonic()'s. Whatever happens, no process is left: the child is a group of its own that is
    killed, and ends by itself when this process does.
    """
    path = os.pathsep.join(filter(None, [str(_PACKAGE), os.environ.get("PYTHONPATH")]))
    printed = os.path.join(folder, "printed")
    with open(printed, "w+", errors="replace") as said:
        child = subprocess.Popen([sys.executable, "-m", "stoker.training_runs.child", str(os.getpid())], text=False,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True,
                                 env={**os.environ, "PYTHONPATH": path})
        try:
            answer = _talk(child, case, deadline, begin)
            if answer is None:
                child.wait()
                said.seek(0)
                return _died(child.returncode, said.read())
            return answer
        finally:
            _end(child)


def _talk(child, case: dict, deadline: float, begin):
    """Its answer; None: it died before it gave one."""
    try:
        child.stdin.write((json.dumps(case) + "\n").encode())
        child.stdin.flush()
        received = b""
        while True:
            line, newline, rest = received.partition(b"\n")
            if newline:
                received = rest
                message = json.loads(line)
                if message.pop("say") == "end":
                    return message
                begin()
                child.stdin.write(b"go\n")
                child.stdin.flush()
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
                raise Cut
            part = os.read(child.stdout.fileno(), 1 << 16)
            if not part:
                return None
            received += part
    except BrokenPipeError:
        return None


def _died(code: int, printed: str) -> dict:
    last = (printed.strip().splitlines() or [""])[-1][-_WORDS:]
    if code == -signal.SIGKILL:
        return {"status": "oom", "note": "out of memory: the system killed the process, as it does where memory runs out"}
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return {"status": "failed", "note": f"the process was ended by {name}" + (f": {last}" if last else "")}
    return {"status": "failed", "note": f"the process ended with exit code {code}" + (f": {last}" if last else "")}


def _end(child) -> None:
    """The whole group: a loader's workers too."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
    child.stdin.close()
    child.stdout.close()
