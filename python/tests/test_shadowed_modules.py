"""A file beside the model that bears the name of a module which libraries need: they get their own, and the file is named."""

import os
import subprocess
import sys

import pytest

from places import PYTHON
from stoker import imports

MODEL = """
import torch, wave
print("mine:", wave.MINE)


def build():
    return torch.nn.Linear(4, 4), (torch.zeros(2, 4),)
"""
# A module of Python's that no library needs later is the user's own.
OWN = "MINE = 7\n"


def started(folder, *arguments, code=None):
    return subprocess.run([sys.executable, "-c", code or imports.starting(), *arguments], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON)), timeout=600)


# Code that is given as text (python -c) counts as a library: its imports get the libraries' own modules.
ALONE = """import sys
sys.path[:1] = [folder for folder in sys.path[:1] if folder]
from stoker import imports
imports.install()
import {name}
print(getattr({name}, "__file__", "built in"))
print(*imports.passed_over(), sep="\\n")
"""


@pytest.mark.parametrize("name", ["types", "token", "random", "typing", "queue", "wave", "numpy"])
def test_a_library_gets_its_own_module_and_the_file_is_named(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("raise ImportError('the wrong one')\n")
    done = started(tmp_path, code=ALONE.format(name=name))
    assert done.returncode == 0, done.stderr
    where, told = done.stdout.splitlines()
    assert str(tmp_path) not in where
    assert told.startswith(f"{name}.py has the name of the module '{name}'") and told.endswith("rename the file")


def test_the_users_own_imports_find_the_users_files(tmp_path):
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "wave.py").write_text(OWN)
    code = ("import sys\nsys.path[:1] = [f for f in sys.path[:1] if f]\nfrom stoker import imports\nimports.install()\nimport net\n")
    done = started(tmp_path, code=code)
    assert done.returncode == 0 and "mine: 7" in done.stdout, done.stderr


@pytest.mark.parametrize("path", ["", os.pathsep, None])
def test_a_child_of_the_package_does_not_search_the_working_directory_first(tmp_path, monkeypatch, path):
    (tmp_path / "random.py").write_text("raise ImportError('the wrong one')\n")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    done = subprocess.run([sys.executable, "-c", ALONE.format(name="random")], cwd=tmp_path, capture_output=True, text=True,
                          env=imports.environment(), timeout=600)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in done.stdout.splitlines()[0]


def test_quiet_says_nothing_of_files_that_were_passed_over(tmp_path):
    (tmp_path / "net.py").write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 4), (torch.zeros(2, 4),)\n")
    (tmp_path / "token.py").write_text("raise ImportError('the wrong one')\n")
    told, quiet = (started(tmp_path, "capture", "net.py:build", "-o", "net.step.gz", *flags) for flags in ((), ("--quiet",)))
    assert told.returncode == quiet.returncode == 0, told.stderr + quiet.stderr
    assert "token.py has the name of the module" in told.stderr
    assert quiet.stderr == "" and quiet.stdout == ""
