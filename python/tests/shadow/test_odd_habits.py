"""Scripts that start programs, train in threads, lie in packages, or say their batch in words of their own."""

import json
import pathlib
import types

import pytest
from test_scripts import captured, found, line_of, run
from test_wild_styles import notes

import odd_scripts as odd
from stoker.shadow import landlock
from stoker.shadow.facade import kernels, nvidia
from stoker.shadow.settings import batch_names

EIGHT_GIB = ("--gpu", "A GPU;8589934592;8.0;1")


def test_programs_leave_nothing_behind_and_nvidia_smi_tells_of_the_gpu(tmp_path, on_cuda):
    (tmp_path / "precious").mkdir()
    doc = captured(tmp_path, odd.COMMANDS, flags=EIGHT_GIB)
    assert found(doc)["batch"] == 8
    line = line_of(odd.COMMANDS, "'rm'")
    assert f"line {line}: a command is not run: rm -rf precious" in notes(doc)
    left = {path.name for path in tmp_path.iterdir()}
    if landlock.Limits(str(tmp_path), False).before(None) is None:
        left.discard("by_a_child")  # a kernel that cannot keep it from writing
    assert left == {"train.py", "out.step.gz", "precious"}


def test_a_script_may_work_in_a_folder_that_it_makes(tmp_path, on_cuda):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "a.txt").write_text("a")
    assert found(captured(tmp_path, odd.IN_ITS_OWN_FOLDER))["batch"] == 20
    assert {path.name for path in tmp_path.rglob("*")} == {"train.py", "out.step.gz", "precious", "a.txt"}


def test_a_script_that_starts_another_names_it(tmp_path, on_cuda):
    code, _, said = run(tmp_path, odd.LAUNCHER)
    assert code == 3 and "train.py line 3 starts another script" in said and "inner.py --lr 0.1" in said and "give that one" in said


def test_a_loop_and_its_prefetching_in_threads(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.THREADED)
    assert (found(doc)["batch"], found(doc)["optimizer"]) == (20, "adamw")
    assert doc["types"][doc["inputs"][0]["type"]] == ["f32", [{"batch": 1}, 64]]


def test_optimizers_that_step_within_the_backward(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.STEPS_INSIDE)
    rows = {row["setting"]: row["words"] for row in doc["script"]["found"]}
    assert rows["optimizer"] == "4 optimizers (SGD)"
    assert all("gradient" in row for row in doc["parameters"])
    assert "optimizers step within the backward" in notes(doc)


def test_networks_that_take_turns_are_both_trained(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.TAKES_TURNS)
    assert [row["requires_grad"] for row in doc["parameters"]] == [True] * 4
    assert all("gradient" in row for row in doc["parameters"])


def test_two_passes_over_one_batch_are_no_accumulation(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.SHARPNESS)
    facts = found(doc)
    assert (facts["batch"], facts["optimizer"]) == (10, "sgd") and "accumulate" not in facts
    assert "the backward of step" not in notes(doc)
    operators = doc["strings"]["operators"]
    assert sum(event[0] == "o" and operators[event[1]] == "aten::addmm" for event in doc["events"]) == 4


def test_a_triton_kernel_of_its_own_moves_its_tensors(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.TRITON)
    assert "the Triton kernel square_kernel counts as one that moves each of its tensors once" in notes(doc)
    assert any(name.startswith("stoker::kernel_") for name in doc["strings"]["operators"])


def test_what_a_kernel_writes_is_read_off_its_stores():
    import ast

    text = ("def k(a_ptr, b_ptr, c_ptr, n):\n    a = a_ptr + n\n    c = c_ptr\n    c += n\n    tl.store(c, tl.load(a))\n"
            "    tl.atomic_add(b_ptr + n * 2, 1)\n    base = tl.make_block_ptr(a_ptr)\n    x = tl.load(base)\n")
    assert kernels._written(ast.parse(text)) == ("b_ptr", "c_ptr")


@pytest.mark.parametrize("words, config, way", [
    (("--batch-size=12",), None, "--batch-size"), ((), {"train": {"batch_size": 12}}, "batch_size")])
def test_a_batch_in_words_of_its_own(tmp_path, on_cuda, words, config, way):
    if config:
        (tmp_path / "config.json").write_text(json.dumps(config))
    doc = captured(tmp_path, odd.OWN_WORDS, *words)
    rows = {row["setting"]: row for row in doc["script"]["found"]}
    assert (rows["batch"]["value"], rows["batch"]["words"]) == (12, f"batch 12 ({way})")
    assert doc["dimensions"][0]["degree"] == 1


def test_a_batch_in_the_environment(tmp_path, on_cuda, monkeypatch):
    monkeypatch.setenv("BATCH_SIZE", "12")
    doc = captured(tmp_path, odd.OWN_WORDS)
    assert doc["dimensions"][0]["degree"] == 1 and found(doc)["batch"] == 12


def test_names_of_batches_outside_of_the_script():
    import ast

    assert batch_names.of_arguments(["--bs", "8", "trainer.batch_size=4", "--eval-batch", "2", "--lr", "1", "+mbs=3"]) == [
        ("word:--bs", 8), ("word:trainer.batch_size", 4), ("word:+mbs", 3)]
    text = ("@click.option('-b', '--batch-size', default=32)\ndef f(): pass\nflags.DEFINE_integer('batch', 16, 'x')\n"
            "n = int(os.getenv('BATCH', '7'))\n")
    assert sorted(batch_names.of_text(ast.parse(text))) == [("environment:BATCH", 7), ("word:--batch", 16), ("word:--batch-size", 32)]


def test_gathering_that_autograd_follows(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.GATHERING, flags=("--gpu", "A GPU;17179869184;8.0;2"))
    assert (found(doc)["parallel"], found(doc)["batch"]) == ("ddp", 16)


def test_a_script_within_a_package(tmp_path, on_cuda):
    package = tmp_path / "project"
    package.mkdir()
    (package / "__init__.py").write_text("import torch\nassert torch.cuda.is_available()\nopen('by_the_package', 'w')\n")
    (package / "model.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(64, 8)\n")
    text = odd.NET.replace("net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()",
                           "from .model import make\nnet = make().cuda()")
    doc = captured(package, text + "for x, y in torch.utils.data.DataLoader(data, batch_size=20):\n    step(x, y)\n")
    assert [row["name"] for row in doc["parameters"]] == ["weight", "bias"]
    assert not list(tmp_path.rglob("by_the_package"))


def test_a_notebooks_command_is_refused_with_its_line(tmp_path):
    code, _, said = run(tmp_path, "import torch\n!pip install something\n")
    assert code == 3 and "line 2 is a notebook's command" in said and "put a # before it" in said


def test_answers_of_nvidia_smi(tmp_path):
    gpu = types.SimpleNamespace(name="NVIDIA T4", memory=15 << 30, capability=(7, 5), count=2)
    tool = nvidia.Tool(types.SimpleNamespace(request=types.SimpleNamespace(gpu=gpu)), str(tmp_path))
    assert tool.text(["--query-gpu=index,name,memory.total", "--format=csv"]) == (
        "index, name, memory.total\n0, NVIDIA T4, 15360 MiB\n1, NVIDIA T4, 15360 MiB\n")
    assert tool.text(["-L"]).startswith("GPU 0: NVIDIA T4 (UUID: GPU-0)\n")
    given = {"args": "nvidia-smi -L | head -1", "shell": True}
    tool.answer(given)
    assert given["args"].startswith("cat ") and given["args"].endswith("| head -1")
    (name,) = (pathlib.Path(given["args"].split()[1]),)
    assert name.read_text().count("\n") == 2


def test_checkpoints_that_the_script_has_saved_are_there(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.RESUMED)
    assert (found(doc)["checkpoint-writes"], found(doc)["batch"]) == (True, 20)
    assert not (tmp_path / "checkpoints").exists()


def test_a_batch_that_is_computed(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.ROLLOUT)
    dimension = doc["dimensions"][0]
    assert (dimension["default"], dimension["degree"], found(doc)["batch"]) == (16, 1, 16)


def test_sizes_that_grow_with_the_square_of_the_batch(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.CONTRASTIVE)
    dimension = doc["dimensions"][0]
    assert (dimension["default"], dimension["degree"], dimension["captured"]) == (24, 2, [3, 5, 7])
    assert ["f32", [{"batch": 2}, {"batch": 2}]] in doc["types"]


def test_what_inference_mode_has_made_is_read_behind_it(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.INFERENCE)
    assert found(doc)["batch"] == 20
    line = line_of(odd.INFERENCE, "before.item()")
    assert (line, "1.0") in {(row["line"], row["answer"]) for row in doc["script"]["reads"]}


def test_transforms_of_functions_and_a_batch_by_position(tmp_path, on_cuda):
    doc = captured(tmp_path, odd.TRANSFORMED)
    dimension = doc["dimensions"][0]
    assert (dimension["default"], dimension["degree"]) == (12, 1)
    assert all("gradient" in row for row in doc["parameters"])
