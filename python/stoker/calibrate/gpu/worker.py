"""Runs cases in a process of its own, so that one that crashes the GPU's context or hangs costs itself only."""

import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
IMPORT_LIMIT_S = 180


class NoStart(Exception):
    """The process did not come up."""


class Worker:
    """A process that measures (child.py); one that dies or hangs costs its case and is replaced."""

    def __init__(self, module="stoker.calibrate.gpu.child", folder=PACKAGE.parent):
        self._process, self._module, self._folder = None, module, folder

    def start(self, limit_s=IMPORT_LIMIT_S):
        """Waits until PyTorch is imported, so that no case pays for it; NoStart after `limit_s` seconds."""
        if self._process is not None and self._process.poll() is None:
            return
        path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen([sys.executable, "-m", self._module], cwd=self._folder, text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, PYTHONPATH=path))
        self._lines = queue.Queue()
        threading.Thread(target=_forward, args=(self._process.stdout, self._lines), daemon=True).start()
        try:
            self._lines.get(timeout=limit_s)
        except queue.Empty:
            self.close()
            raise NoStart(f"importing PyTorch takes longer than {limit_s:.0f} s here") from None

    def run(self, case, timeout):
        """The rows of a case; none when it was not finished within `timeout` seconds, its process's start among them."""
        end = time.monotonic() + timeout
        try:
            self.start(min(IMPORT_LIMIT_S, timeout))
        except NoStart:
            return []
        try:
            self._process.stdin.write(json.dumps(case) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            self.close()
            return []
        except BrokenPipeError:
            line = None
        if line is None:
            code = self._process.wait()
            self._process = None
            return [{"status": "failed", "note": f"the process ended with exit code {code}"}]
        return json.loads(line)

    def pid(self):
        """Of the process that measures now; 0 where there is none."""
        return self._process.pid if self._process is not None else 0

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _forward(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put(None)
