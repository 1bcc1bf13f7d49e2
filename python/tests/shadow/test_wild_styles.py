"""Scripts in the styles that people write them in: what each is taken for."""

from test_scripts import captured, found, line_of

import stoker
import wild_scripts as wild


def notes(doc) -> str:
    return " ".join(doc["diagnostics"].get("unfaithful", []))


def test_a_batch_of_one_letter_that_has_to_divide_another_number(tmp_path, on_cuda):
    doc = captured(tmp_path, wild.GPT)
    facts = found(doc)
    assert (facts["batch"], facts["accumulate"], facts["compile"]) == (8, 4, True)
    assert (facts["precision"], facts["clip"], facts["optimizer"]) == ("amp-bf16", True, "adamw")
    assert (doc["dimensions"][0]["captured"], doc["dimensions"][0]["default"]) == ([4, 8], 8)
    assert doc["types"][doc["inputs"][0]["type"]] == ["i64", [{"batch": 1}, 16]]


def test_gradients_that_live_through_the_forward(tmp_path, on_cuda):
    doc = captured(tmp_path, wild.ZERO_BETWEEN)
    rows = {row["setting"]: row for row in doc["script"]["found"]}
    assert rows["zero-grad-between"]["value"] is True
    assert rows["zero-grad-between"]["line"] == line_of(wild.ZERO_BETWEEN, "optimizer.zero_grad()")
    assert "zero-grad-after" not in rows


def test_cuda_graphs_are_run_eagerly_and_said(tmp_path, on_cuda):
    doc = captured(tmp_path, wild.GRAPHED)
    facts = found(doc)
    assert (facts["cuda-graphs"], facts["batch"], facts["optimizer"]) == (True, 48, "sgd")
    read = wild.GRAPHED.replace("        optimizer.step()", "        optimizer.step()\n        print(loss.item())")
    doc = captured(tmp_path, read.replace("loss.backward()", "loss = loss / loss.item(); loss.backward()"))
    assert "cuda-graphs" not in found(doc)
    assert "captures CUDA graphs of a part of its step" in notes(doc)


def test_fsdp_computes_in_the_precision_of_its_policy(tmp_path, on_cuda, with_binary):
    doc = captured(tmp_path, wild.FSDP, flags=("--gpu", "A GPU;17179869184;8.0;4"))
    facts = found(doc)
    assert (facts["parallel"], facts["fsdp-mixed-precision"], facts["gpus"]) == ("fsdp-zero2", "reduce-fp32", 4)
    assert (doc["precision"], facts["clip"], facts["batch"]) == ("bf16", True, 16)
    assert {doc["types"][row["type"]][0] for row in doc["parameters"]} == {"bf16"}
    best = stoker.plan(tmp_path / "out.step.gz", "a100-40gb", gpus=4)["settings"]
    assert (best["precision"], best["gpus"], best["parallel"], best["fsdp_mixed_precision"]) == ("bf16", 4, "fsdp-zero2", "reduce-fp32")
    doc = captured(tmp_path, wild.FSDP, flags=("--gpu", "A GPU;17179869184;8.0;1"))
    assert doc["precision"] == "fp32" and "fsdp-mixed-precision" not in found(doc)


def test_a_notebook_that_was_exported(tmp_path, on_cuda):
    doc = captured(tmp_path, wild.NOTEBOOK)
    assert (found(doc)["batch"], found(doc)["optimizer"]) == (20, "sgd")
    assert "the notebook's command is not run: pip install -q something" in notes(doc)


def test_a_loop_without_model_and_optimizer(tmp_path, on_cuda):
    doc = captured(tmp_path, wild.BY_HAND)
    assert {row["name"] for row in doc["parameters"]} == {"C", "W1", "b1", "W2"}
    assert all("gradient" in row for row in doc["parameters"])
    assert (found(doc)["batch"], doc["optimizer"]["name"]) == (32, "none")
    assert [event[1] for event in doc["events"] if event[0] == "p"] == ["load", "forward", "backward", "end"]


def test_a_parameter_that_no_module_holds_and_a_step_that_does_more(tmp_path, on_cuda):
    doc = captured(tmp_path, wild.UNCERTAIN)
    assert [(row["name"], row["group"]) for row in doc["parameters"]] == [("weight", 0), ("bias", 0), ("log_vars", 1)]
    assert "gradient" in doc["parameters"][2]
    assert "the backward of step" in notes(doc) and "what not every step does is not counted" in notes(doc)
    assert found(doc)["zero-grad-between"] is True and not doc["diagnostics"].get("item_calls")


TORCHVISION = {"__init__.py": "", "datasets.py": """
class VisionDataset:
    def __init__(self, root='', transform=None):
        raise RuntimeError('there are no files')

class MNIST(VisionDataset):
    pass

__all__ = ('VisionDataset', 'MNIST')
"""}


def test_data_sets_are_stood_in_for_whichever_torchvision_has_them(tmp_path, on_cuda):
    (tmp_path / "torchvision").mkdir()
    for name, text in TORCHVISION.items():
        (tmp_path / "torchvision" / name).write_text(text)
    doc = captured(tmp_path, wild.PICTURES, flags=("--fake-data", "1x28x28:7:600"))
    assert (found(doc)["samples"], found(doc)["batch"]) == (600, 30)
    assert doc["types"][doc["inputs"][0]["type"]] == ["f32", [{"batch": 1}, 1, 28, 28]]
    assert "MNIST is stood in for by 600 images of 1x28x28" in notes(doc)
