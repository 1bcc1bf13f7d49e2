"""Scripts as they are: what is captured of them, and what is found in them."""

import copy
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import training_scripts as scripts
from places import PYTHON
from stoker import step_file

HUGE = scripts.HEAD + "kept = []\nwhile True:\n    kept.append(b'x' * (1 << 26))\n"


def run(folder, text, *words, flags=()):
    """(exit code, document or None, what was said)."""
    script = folder / "train.py"
    script.write_text(text)
    out = folder / "out.step.gz"
    done = subprocess.run([sys.executable, "-m", "stoker", "capture", "train.py", "-o", str(out), *flags, "--", *words], cwd=folder,
                          capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    return done.returncode, step_file.read(str(out)) if out.exists() else None, done.stderr + done.stdout


def captured(folder, text, *words, flags=()):
    code, doc, said = run(folder, text, *words, flags=flags)
    assert code == 0, said
    return doc


def found(doc) -> dict:
    return {row["setting"]: row["value"] for row in doc["script"]["found"]}


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def comparable(doc) -> dict:
    """What a step file says of the step itself."""
    kept = copy.deepcopy(doc)
    for key in ("provenance", "name", "script"):
        kept.pop(key, None)
    return kept


@pytest.fixture(scope="module")
def classifier(tmp_path_factory, on_cuda):
    """(folder of the script, its step), for tests that look at the same capture."""
    folder = tmp_path_factory.mktemp("classifier")
    return folder, captured(folder, scripts.CLASSIFIER, "--epochs", "2")


def test_a_script_gives_the_step_that_a_capture_function_gives(classifier):
    folder, doc = classifier
    out = folder / "function.step.gz"
    subprocess.run([sys.executable, "-m", "stoker", "capture", "train.py:capture", "--batch", "16", "-o", str(out), "--quiet"], check=True,
                   cwd=folder, env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    through_function = step_file.read(str(out))
    assert json.dumps(comparable(doc), sort_keys=True) == json.dumps(comparable(through_function), sort_keys=True)
    assert doc["provenance"]["event_hash"] == through_function["provenance"]["event_hash"]


def test_a_capture_is_outdated_by_a_file_of_the_script_or_another_pytorch(classifier):
    folder, doc = classifier
    paths = [path for path, _, _ in doc["script"]["sources"]]
    assert str(folder / "train.py") in paths
    assert [path for path in paths if path.endswith(os.path.join("torch", "version.py"))]


def test_settings_are_found_with_their_lines_and_nothing_is_left_behind(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.CLASSIFIER, "--epochs", "2", "--batch-size", "24")
    rows = {row["setting"]: row for row in doc["script"]["found"]}
    loader = line_of(scripts.CLASSIFIER, "loader = DataLoader")
    assert (rows["batch"]["value"], rows["batch"]["line"]) == (24, loader)
    assert (rows["workers"]["value"], rows["prefetch"]["value"], rows["pin"]["value"], rows["samples"]["value"]) == (2, 4, True, 200)
    assert rows["persistent-workers"]["value"] is False
    assert (rows["optimizer"]["value"], rows["optimizer"]["line"]) == ("adamw", line_of(scripts.CLASSIFIER, "optimizer = torch"))
    reads = {(row["line"], row["answer"]) for row in doc["script"]["reads"]}
    assert (line_of(scripts.CLASSIFIER, "torch.isnan"), "False") in reads
    assert (line_of(scripts.CLASSIFIER, "loss.item()"), "1.0") in reads
    assert doc["dimensions"][0]["default"] == 24
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.step.gz", "train.py"]


def test_accumulation_loss_scaling_clipping_and_precision(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.ACCUMULATING)
    facts = found(doc)
    assert (facts["accumulate"], facts["precision"], facts["grad-scaler"], facts["clip"]) == (4, "amp-fp16", True, True)
    assert doc["precision"] == "amp-fp16"
    assert doc["training"] == {"clip": True, "grad_scaler": True}
    operators = doc["strings"]["operators"]
    assert sum(event[0] == "o" and operators[event[1]] == "aten::convolution" for event in doc["events"]) == 1


def test_another_precision_than_the_scripts_own(tmp_path, on_cuda):
    assert captured(tmp_path, scripts.ACCUMULATING, flags=("--precision", "fp32"))["precision"] == "fp32"
    assert captured(tmp_path, scripts.ACCUMULATING, flags=("--precision", "amp-bf16"))["precision"] == "amp-bf16"
    code, _, said = run(tmp_path, scripts.ACCUMULATING, flags=("--precision", "bf16"))
    assert code == 3 and "trains in" in said and "not in bf16" in said and "behind --" in said


def test_a_moving_average_a_validation_and_an_autocast_around_the_model(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.AVERAGED, flags=("--precision", "amp-bf16"))
    facts = found(doc)
    assert (facts["ema"], facts["validation"], facts["validation-samples"], facts["batch"]) == (True, 32, 96, 8)
    assert doc["training"] == {"ema": True} and doc["precision"] == "amp-bf16"
    assert any("put around the model" in note for note in doc["diagnostics"]["unfaithful"])


def test_an_average_in_a_dict_is_told_from_weights_that_a_penalty_reads(tmp_path, on_cuda):
    row = next(r for r in captured(tmp_path, scripts.AVERAGED_IN_A_DICT)["script"]["found"] if r["setting"] == "ema")
    assert (row["value"], row["words"]) == (True, "a second copy of the model's weights in a dict (a moving average)")
    assert "ema" not in found(captured(tmp_path, scripts.OLD_WEIGHTS))


def test_several_models_and_optimizers_are_one_step(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.GAN)
    names = [row["name"] for row in doc["parameters"]]
    assert "netD.0.weight" in names and "netG.2.bias" in names
    assert all("gradient" in row for row in doc["parameters"])
    assert [len(doc["optimizer"]["groups"]), doc["optimizer"]["name"]] == [2, "adam"]
    assert [row["group"] for row in doc["parameters"] if row["name"].startswith("netG")] == [0] * 4
    phases = [event[1] for event in doc["events"] if event[0] == "p"]
    assert phases == ["load", "forward", "loss", "backward", "end"]


def test_a_batch_that_no_loader_makes_is_found_among_the_arguments(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.BY_ARGUMENT)
    assert doc["dimensions"][0]["default"] == 12
    assert doc["dimensions"][0]["degree"] == 1
    assert doc["inputs"][0]["name"] == "input"
    assert doc["types"][doc["inputs"][0]["type"]] == ["f32", [{"batch": 1}, 6, 20]]
    assert "aten::_cudnn_rnn" in doc["strings"]["operators"]


def test_a_batch_by_its_name(tmp_path, on_cuda):
    text = scripts.BY_ARGUMENT.replace("args.batch_size", "many").replace("args = parser", "many = 9\nargs = parser")
    doc = captured(tmp_path, text, flags=("--batch-arg", "many"))
    assert doc["types"][doc["inputs"][0]["type"]] == ["f32", [{"batch": 1}, 6, 20]]


def test_without_an_optimizer_the_next_forward_ends_the_step(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.WITHOUT_OPTIMIZER)
    assert doc["optimizer"]["name"] == "none"
    assert any("no optimizer" in note for note in doc["diagnostics"]["unfaithful"])
    assert all("gradient" in row for row in doc["parameters"])


def test_a_script_of_the_cpu_is_captured_there_and_said_to_be(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.ON_CPU)
    assert doc["provenance"]["capture"] == "fake-cpu"
    assert any("trains on the CPU" in note for note in doc["diagnostics"]["unfaithful"])
    assert doc["types"][doc["inputs"][0]["type"]] == ["f32", [{"batch": 1}, 3, 16, 16]]


def test_a_script_of_torchrun_gets_its_variables(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.RANKS, flags=("--gpu", "A GPU;17179869184;8.0;2"))
    facts = found(doc)
    assert (facts["parallel"], facts["gpus"]) == ("ddp", 2)
    assert [row["name"] for row in doc["parameters"]][0] == "conv.weight"


def test_a_process_that_the_script_starts_is_followed(tmp_path, on_cuda):
    assert found(captured(tmp_path, scripts.FORKING))["batch"] == 8


def test_a_script_that_hides_the_gpus_trains_on_the_cpu(tmp_path, on_cuda):
    assert captured(tmp_path, scripts.HIDES_GPUS, "--epochs", "2")["provenance"]["capture"] == "fake-cpu"


def test_data_sets_of_torchvision_are_stood_in_for(tmp_path, on_cuda):
    pytest.importorskip("torchvision")
    doc = captured(tmp_path, scripts.MISSING_DATA, flags=("--fake-data", "3x32x32:10:500"))
    assert (found(doc)["samples"], found(doc)["batch"]) == (500, 8)
    assert doc["types"][doc["inputs"][0]["type"]] == ["f32", [{"batch": 1}, 3, 32, 32]]


@pytest.mark.parametrize("shape", ["3x32", "2x32x32", "3x0x4", "x", "3x32x32:ten"])
def test_a_shape_that_means_nothing_is_refused(tmp_path, shape):
    code, _, said = run(tmp_path, scripts.NEVER_TRAINS, flags=("--fake-data", shape))
    assert code == 3 and f"--fake-data {shape}: " in said


def test_ctrl_c_leaves_no_process(tmp_path):
    (tmp_path / "train.py").write_text(f"import subprocess, time\nsubprocess.Popen(['sleep', '977{os.getpid()}'])\ntime.sleep(600)\n")
    child = subprocess.Popen([sys.executable, "-m", "stoker", "capture", "train.py"], cwd=tmp_path, stderr=subprocess.PIPE,
                             env=dict(os.environ, PYTHONPATH=str(PYTHON)), start_new_session=True)
    mark = f"977{os.getpid()}".encode()
    deadline = time.monotonic() + 120
    while not _running(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _running(mark)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 130
    while _running(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _running(mark)


def _running(mark: bytes) -> bool:
    """Whether a process has this word on its command line, and is no child's remains."""
    for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in line.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("text, flags, code, words", [
    (scripts.NEVER_TRAINS, (), 3, "made no training step"), (scripts.FAILS, (), 3, "FileNotFoundError"),
    (scripts.ENDS_ITSELF, (), 3, "os._exit"), (scripts.SWALLOWS, ("--time-limit", "6"), 3, "took more than 6 s"),
    (scripts.SECOND_GPU, (), 3, "uses cuda:1, and there is 1 of them: give --gpus 2"),
    (scripts.READS_INPUT, (), 3, "it reads its standard input"),
    (HUGE, ("--max-host-memory", "1G"), 3, "of this machine's memory and was ended before its first step"),
    ("def broken(:\n", (), 3, "line 1 is not Python")])
def test_scripts_that_cannot_be_captured_say_why(tmp_path, text, flags, code, words):
    ended, doc, said = run(tmp_path, text, flags=flags)
    assert (ended, doc) == (code, None)
    assert words in said


def test_the_traceback_of_a_failing_script_is_its_own(tmp_path):
    _, _, said = run(tmp_path, scripts.FAILS)
    assert f'"train.py", line {line_of(scripts.FAILS, "return open")}, in load' in said
    assert "shadow" not in said


def test_a_shell_script_is_refused_with_the_line_that_starts_python(tmp_path):
    (tmp_path / "run.sh").write_text("#!/bin/bash\nset -e\ntorchrun --nproc_per_node 2 train.py --epochs 3\n")
    done = subprocess.run([sys.executable, "-m", "stoker", "capture", "run.sh"], cwd=tmp_path, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    assert done.returncode == 3
    assert "line 3 starts it: torchrun" in done.stderr


def test_sentences_are_taken_to_be_as_long_as_the_longest(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.SENTENCES)
    assert (doc["dimensions"][0]["default"], doc["dimensions"][0]["degree"]) == (4, 1)
    assert doc["types"][doc["inputs"][0]["type"]] == ["i64", [{"batch": 1}, 34]]
    assert "aten::_cudnn_rnn" in doc["strings"]["operators"]
    notes = " ".join(doc["diagnostics"]["unfaithful"])
    assert "packed sequences are taken to be as long as the longest" in notes
    assert "as large as the largest of the first 32" in notes


def test_what_follows_from_the_hosts_data_is_read_as_it_is(tmp_path, on_cuda):
    doc = captured(tmp_path, scripts.PARTICULAR, flags=("--gpu", "T4;15843721216;7.5;1"))
    assert (doc["dimensions"][0]["captured"], doc["dimensions"][0]["verified"]) == ([4, 8], [16])
    assert doc["optimizer"]["name"] == "lion"  # keeps one tensor beside each parameter, too
    notes = " ".join(doc["diagnostics"]["unfaithful"])
    assert "momentum is not modelled: taken for lion" in notes and "SyncBatchNorm" in notes
    assert all(row["line"] != line_of(scripts.PARTICULAR, "int(y.max())") for row in doc["script"]["reads"])
