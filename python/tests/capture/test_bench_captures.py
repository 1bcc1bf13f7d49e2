"""bench/accuracy/capture_many.py: captures in forks of one process that has PyTorch."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from places import PYTHON, REPOSITORY  # noqa: E402


def test_a_fork_of_the_process_that_prepared_fake_cuda_can_run_a_backward(tmp_path):
    out = tmp_path / "mlp.step.gz"
    job = {"spec": "mlp_models.py:mlp", "precision": "fp32", "out": str(out), "image_size": None, "mode": "train",
           "options": {"features": 4, "layers": [["linear", 3]]}}
    (tmp_path / "jobs.jsonl").write_text(json.dumps(job) + "\n")
    done = subprocess.run([sys.executable, str(REPOSITORY / "bench/accuracy/capture_many.py"), str(tmp_path / "jobs.jsonl")],
                          capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"out": str(out), "error": None}
    assert out.exists()
