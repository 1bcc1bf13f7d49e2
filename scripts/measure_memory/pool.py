"""Fresh processes for cases, one of them always importing PyTorch ahead of its turn."""

import json
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]


class Pool:
    """run() gives the row of one case; a child that dies or takes too long is a row as well."""

    def __init__(self):
        self._spare = self._start()

    @staticmethod
    def _start():
        errors = tempfile.TemporaryFile("w+")
        process = subprocess.Popen([sys.executable, "-m", "measure_memory.child"], cwd=SCRIPTS, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        return process, errors

    def run(self, case, timeout):
        process, errors = self._spare
        self._spare = self._start()
        try:
            out, _ = process.communicate(json.dumps(case) + "\n", timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return {"status": "failed", "note": f"took longer than {timeout:.0f} s"}
        lines = out.strip().splitlines()
        if process.returncode == 0 and lines:
            return json.loads(lines[-1])
        errors.seek(0)
        said = errors.read().strip().splitlines()
        return {"status": "failed", "note": f"exit code {process.returncode}: {said[-1] if said else 'nothing said'}"[:300]}

    def close(self):
        process, _ = self._spare
        process.communicate("")
