"""What a capture depends on: files of the user's, configurations, variables, versions of libraries."""

import json
import os
import subprocess
import sys
import zlib

import torch

from places import PYTHON
from stoker import sources, step_file

MODEL = """
import json, os, pathlib
import torch
import net

def build(batch=4):
    width = json.loads(pathlib.Path(__file__).with_name("settings.json").read_text())["width"]
    return net.make(width * int(os.environ.get("SCALE", "1"))), torch.empty(batch, 4)
"""
NET = "from torch import nn\n\ndef make(width):\n    return nn.Sequential(nn.Linear(4, width), nn.Linear(width, 2))\n"


def capture(folder, *flags, **variables):
    env = {**os.environ, "PYTHONPATH": str(PYTHON), "SECRET": "hidden", **variables}
    out = folder / "build.step.gz"
    done = subprocess.run([sys.executable, "-m", "stoker", "capture", "train.py:build", "-o", out, "--quiet", *flags], cwd=folder, env=env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return step_file.read(str(out))["provenance"]


def project(folder):
    (folder / "train.py").write_text(MODEL)
    (folder / "net.py").write_text(NET)
    (folder / "settings.json").write_text(json.dumps({"width": 8}))


def test_every_file_and_variable_that_decides_is_named_on_request(tmp_path):
    project(tmp_path)
    found = capture(tmp_path, "--sources", SCALE="2")
    named = {os.path.basename(row["file"]): row for row in found["sources"]}
    assert {"train.py", "net.py", "settings.json", "version.py"} == set(named), "and PyTorch's version, which lies in version.py"
    assert named["net.py"] == sources.described(str(tmp_path / "net.py"))
    assert found["environment"] == {"SCALE": zlib.crc32(b"2")}
    assert "hidden" not in json.dumps(found)
    assert "sources" not in capture(tmp_path), "paths of this computer are written where they are asked for"


def test_libraries_that_define_a_module_are_named(monkeypatch):
    class Ours(torch.nn.Module):
        pass

    assert sources.libraries_of(torch.nn.Sequential(Ours())) == ["torch"]
    assert sources.version_of("torch") == torch.__version__ and sources.version_of("no_such_library") == "unknown"


def test_what_is_gone_or_no_file_has_no_description(tmp_path):
    assert sources.described(str(tmp_path)) is None and sources.described(str(tmp_path / "gone")) is None


OPTIONAL = """
import os
import torch
from torch import nn
import numpy
try:
    from fast_net import make
except ImportError:
    def make(width):
        return nn.Linear(4, width)
try:
    width = int(open("width.txt").read())
except OSError:
    width = len(os.listdir("classes"))

def build(batch=4):
    return make(width), torch.empty(batch, 4)
"""


def test_what_was_looked_for_in_vain_and_what_was_listed_is_named(tmp_path):
    (tmp_path / "train.py").write_text(OPTIONAL)
    for name in ("dog", "cat"):
        (tmp_path / "classes" / name).mkdir(parents=True)
    rows = capture(tmp_path, "--sources")["sources"]
    absent = {row["file"] for row in rows if row.get("absent")}
    assert {str(tmp_path / name) for name in ("fast_net.py", "fast_net", "width.txt")} <= absent
    assert not any("torch" in file or "numpy" in file for file in absent), "what libraries look for is theirs"
    listed = [row for row in rows if "entries" in row]
    assert listed == [{"file": str(tmp_path / "classes"), "entries": 2, "crc32": zlib.crc32(b"cat\ndog\n")}]
    versions = [row["file"] for row in rows if "numpy" in row["file"]]
    assert len(versions) == 1 and "version" in versions[0], "a library that a file of the user's imports counts, too"


ASKING = """
import os, pathlib
import torch

def build(batch=4):
    here = pathlib.Path(__file__).parent
    wide = os.path.exists(here / "wide.flag") or (here / "wider.flag").is_file() or os.path.isdir("widest")
    return torch.nn.Linear(4, 8 if wide and os.access(here / "small.flag", os.R_OK) else 2), torch.empty(batch, 4)
"""


def test_files_that_are_only_asked_for_count(tmp_path):
    (tmp_path / "train.py").write_text(ASKING)
    rows = capture(tmp_path, "--sources")["sources"]
    assert {os.path.basename(row["file"]) for row in rows if row.get("absent")} == {"wide.flag", "wider.flag", "widest"}
    (tmp_path / "wider.flag").write_text("")
    rows = capture(tmp_path, "--sources")["sources"]
    assert sources.described(str(tmp_path / "wider.flag")) in rows, "one that goes away changes the model, too"
    assert {os.path.basename(row["file"]) for row in rows if row.get("absent")} == {"wide.flag", "small.flag"}


def test_where_people_work_and_where_models_code_is_kept(monkeypatch):
    for path in ("/usr/src/app/train.py", "/run/media/me/disk/net.py", "/home/me/net.py", "/opt/project/net.py",
                 os.path.join(sources._CACHE, "torch/hub/facebookresearch_x/model.py"),
                 os.path.join(sources._CACHE, "huggingface/hub/models--gpt2/refs/main")):
        assert sources._is_users(path), path
    for path in ("/usr/lib/python3/dist-packages/yaml/__init__.py", "/usr/local/lib/python3.11/json/__init__.py", "/etc/hosts",
                 os.path.join(sources._CACHE, "stoker/shim.so"), "/venv/lib/python3.11/site-packages/timm/models.py"):
        assert not sources._is_users(path), path
