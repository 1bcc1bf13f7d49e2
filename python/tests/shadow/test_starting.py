"""Scripts that start programs, save and load, split their batches and compute in several threads."""

import os
import subprocess
import sys

import pytest
from test_scripts import captured, found, line_of, run
from test_wild_styles import notes

import starting_scripts as starting
from places import PYTHON
from stoker.shadow import landlock
from stoker.shadow.facade import commands


def count(doc, name: str) -> int:
    """How many operators of this name the step has."""
    operators = doc["strings"]["operators"]
    return sum(event[0] == "o" and operators[event[1]] == name for event in doc["events"])


def test_programs_started_in_any_way_keep_their_manners(tmp_path, on_cuda):
    (tmp_path / "precious").mkdir()
    doc = captured(tmp_path, starting.STARTS)
    assert found(doc)["batch"] == 20
    left = {path.name for path in tmp_path.iterdir()}
    if landlock.Limits(str(tmp_path), False).before(None) is None:
        left = {name for name in left if not name.startswith("written_by")}  # a kernel that cannot keep them from writing
    assert left == {"train.py", "out.step.gz", "precious"}
    line = line_of(starting.STARTS, "os.spawnvp")
    assert f"line {line}: a command is not run: rm -rf precious" in notes(doc)


def test_what_was_saved_is_there_however_it_was_saved(tmp_path, on_cuda):
    doc = captured(tmp_path, starting.SAVES)
    assert found(doc)["batch"] == 20 and "would fail" not in notes(doc)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.step.gz", "train.py"]


def test_files_of_safetensors(tmp_path, on_cuda):
    pytest.importorskip("safetensors")
    doc = captured(tmp_path, starting.SAFETENSORS)
    assert found(doc)["checkpoint-writes"] is True
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.step.gz", "train.py"]


def test_weights_that_do_not_fit_are_said(tmp_path, on_cuda):
    doc = captured(tmp_path, starting.MISFIT)
    line = line_of(starting.MISFIT, "torch.load('other.pt')")
    assert f"line {line}: load_state_dict would fail, as weights do not fit the model: 4 missing (first: 0.weight)" in notes(doc)


@pytest.mark.parametrize("text, degree", [(starting.CHUNKED, 1), (starting.SLICED, 1), (starting.FIXED_SLICES, 0)])
def test_a_batch_that_is_taken_in_parts(tmp_path, on_cuda, text, degree):
    doc = captured(tmp_path, text)
    facts = found(doc)
    assert (facts["batch"], facts["accumulate"]) == (16, 4)
    dimension = doc["dimensions"][0]
    assert (dimension["default"], dimension.get("degree", 0)) == (16, degree)
    line = line_of(text, "    for ")
    assert f"line {line}: a batch of the DataLoader (64) is taken in 4 parts" in notes(doc)
    if degree:
        assert ["f32", [{"batch": 1}, 64]] in doc["types"]


def test_what_a_thread_computes_beside_the_training_is_not_counted(tmp_path, on_cuda):
    doc = captured(tmp_path, starting.EVALUATES_BESIDE)
    assert "what another thread computes on the GPU beside the training is not counted" in notes(doc)
    assert count(doc, "aten::addmm") == 2 and len(doc["parameters"]) == 4


def test_threads_that_compute_parts_of_one_step_are_refused(tmp_path, on_cuda):
    code, _, said = run(tmp_path, starting.SIDE_BY_SIDE)
    line = line_of(starting.SIDE_BY_SIDE, "losses[i] =")
    assert code == 3 and f"line {line}: two threads compute parts of one step at the same time" in said, said


def test_steps_of_a_pool_of_threads(tmp_path, on_cuda):
    doc = captured(tmp_path, starting.IN_A_POOL)
    assert found(doc)["batch"] == 20 and count(doc, "aten::addmm") == 2


@pytest.mark.parametrize("line, verdict", [
    ("tar -tzf data.tgz", "reads"), ("tar tf a.tar", "reads"), ("tar xf a.tar", "writes"), ("tar --list -f a.tar", "reads"),
    ("tar -xOf a.tar name", "reads"), ("tar -czf test.tar t", "writes"), ("python -m json.tool config.json", "reads"),
    ("python3 -m json.tool a b", "writes"), ("unzip -l a.zip", "reads"), ("unzip -q a.zip -d out", "writes"),
    ("gzip -dc a.gz", "reads"), ("gzip a", "writes"), ("zcat a.gz | wc -l", "reads"), ("cat a | gzip", "reads"),
    ("sed -n 1,5p f", "reads"), ("sed -i s/a/b/ f", "writes"), ("sed -ni p f", "writes"), ("sed --in-place=.bak s/a/b/ f", "writes"),
    ("sed -e s/i/x/ f", "reads"), ("sort -k2 f", "reads"), ("sort -o f f", "writes"), ("sort -rno out f", "writes"),
    ("find . -name '*.py'", "reads"), ("find . -delete", "writes"), ("find . -exec rm {} \\;", "writes"),
    ("find . -name x -exec wc -l {} +", "reads"), ("ls | xargs rm", "writes"), ("ls | xargs -n 1 wc -l", "reads"),
    ("awk '$1 > 5 {print $2}' f", "reads"), ("awk '{print > \"out\"}' f", "writes"), ("awk 'BEGIN {system(\"rm x\")}'", "writes"),
    ("git rev-parse --short HEAD", "reads"), ("git -C sub log -1", "reads"), ("git describe --always --dirty", "reads"),
    ("git branch --show-current", "reads"), ("git branch new", "writes"), ("git tag v1", "writes"), ("git tag -l", "reads"),
    ("git config user.name", "reads"), ("git config user.name me", "writes"), ("git remote -v", "reads"), ("git checkout x", "writes"),
    ("git clone url", "fetches"), ("git stash", "writes"), ("git stash list", "reads"), ("lscpu", "reads"), ("free -g", "reads"),
    ("nproc", "reads"), ("df -h .", "reads"), ("du -sh data", "reads"), ("md5sum f", "reads"), ("uname -a", "reads"),
    ("date +%s", "reads"), ("date -s now", "writes"), ("uniq a b", "writes"), ("gcc --version", "reads"), ("conda --version", "reads"),
    ("bash -c 'rm -rf x'", "writes"), ("bash -c 'wc -l x && nproc'", "reads"), ("sh run.sh", "trains"), ("./train.py", "trains"),
    ("timeout 10 python train.py", "trains"), ("CUDA_VISIBLE_DEVICES=0 nohup python -u train.py --lr 1", "trains"),
    ("taskset -c 0-3 python -m package.train", "trains"), ("torchrun --nproc_per_node 2 x.py", "trains"),
    ("accelerate launch x.py", "trains"), ("accelerate env", "reads"), ("mpirun -np 2 python x", "trains"),
    ("pip list", "reads"), ("pip install x", "fetches"), ("python -m pip freeze", "reads"), ("python --version", "reads"),
    ("python -c 'import torch; print(torch.__version__)'", "reads"), ("python -c 'open(1)'", "unknown"), ("curl x", "fetches"),
    ("if [ -f x ]; then rm x; fi", "writes"), ("for f in *; do wc $f; done", "reads"), ("(cd a && rm b)", "writes"),
    ("echo $(rm x)", "writes"), ("echo `nproc`", "reads"), ("ffmpeg -i a.mp4 b.mp4", "writes"), ("ffprobe a.mp4", "reads"),
    ("ldconfig -p", "reads"), ("ldconfig", "writes"), ("echo $(rm $(ls))", "writes"), ("diff <(rm a) b", "writes"),
    ("case x in a) rm b;; esac", "unknown"), ("ffmpeg -i a.mp4 -f rawvideo -", "reads"), ("some-program --flag", "unknown"), ("", "reads")])
def test_what_a_command_does(line, verdict):
    assert commands._worst(map(commands.of, commands.parts(line))) == verdict


def test_without_landlock_only_what_is_known_to_read_is_run(tmp_path, monkeypatch):
    import types

    from stoker.shadow import manners
    from stoker.shadow.facade import processes

    world = types.SimpleNamespace(on_gpu=False, note=lambda text: told.append(text), request=types.SimpleNamespace(script="train.py"),
                                  outcome=types.SimpleNamespace(starts=[]))
    told: list = []
    for exist, expected in ((True, "some-program"), (False, "true")):
        kept = processes.Manners(world, manners.Overlay(str(tmp_path)), types.SimpleNamespace(exist=exist))
        given = {"args": ["some-program", "x"]}
        kept.keep(given, "train.py line 1")
        assert given["args"][0] == expected
        kept.keep(given := {"args": ["wc", "x"]}, "train.py line 1")
        assert given["args"] == ["wc", "x"]
    assert any("no Landlock" in text for text in told)


def test_files_that_the_script_has_written_are_found_by_what_it_starts(tmp_path):
    from stoker.shadow import manners
    from stoker.shadow.facade import processes

    overlay = manners.Overlay(str(tmp_path / "scratch"))
    inside = overlay.to_write(str(tmp_path / "a b.txt"))
    os.makedirs(os.path.dirname(inside), exist_ok=True)
    open(inside, "w").close()
    line = f"grep -c x '{tmp_path}/a b.txt' {tmp_path}/other | wc"
    assert processes._WORDS.sub(lambda m: processes._as_written(overlay, m), line) == f"grep -c x '{inside}' {tmp_path}/other | wc"


def test_programs_of_a_script_whose_loader_is_probed_keep_their_manners(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "train.py").write_text(starting.PROBED)
    done = subprocess.run([sys.executable, "-m", "stoker", "probe", "train.py", "--budget", "2s", "--json", "--"], cwd=tmp_path,
                          capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "train.py"]


def test_a_pool_that_evaluates_copies_meanwhile(tmp_path, on_cuda):
    doc = captured(tmp_path, starting.POOL_EVALUATES)
    assert found(doc)["batch"] == 20 and count(doc, "aten::addmm") == 2
    assert "the script failed" not in notes(doc) and "batches of its DataLoader" not in notes(doc)
