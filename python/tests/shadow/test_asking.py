"""Scripts that ask the GPU, libraries around PyTorch and other processes: each is forecast, or refused with its line and the way out."""

import importlib.util

import pytest
from test_scripts import captured, found, line_of, run
from test_wild_styles import notes

import asking_scripts as asking

TWO = ("--gpu", "A GPU;17179869184;8.0;2")


def test_whatever_is_asked_of_the_gpu_is_answered(tmp_path, on_cuda):
    doc = captured(tmp_path, asking.EVERYTHING)
    facts = found(doc)
    assert (facts["batch"], facts["pin"], facts["cudnn-benchmark"], facts["tf32"]) == (20, True, True, True)
    assert (facts["memory-fraction"], facts["alloc-conf"], facts["cublas-workspace"]) == (0.5, "expandable_segments:True", ":4096:8")
    row = next(row for row in doc["script"]["found"] if row["setting"] == "alloc-conf")
    assert (row["line"], row["words"]) == (line_of(asking.EVERYTHING, "ALLOC_CONF"), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")


def test_a_profiler_is_switched_off_and_leaves_no_trace(tmp_path, on_cuda):
    doc = captured(tmp_path, asking.PROFILED)
    assert found(doc)["batch"] == 20 and "the script's profiler is switched off" in notes(doc)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.step.gz", "train.py"]


def test_a_script_that_looks_for_a_batch_is_told_who_knows(tmp_path, on_cuda):
    doc = captured(tmp_path, asking.FINDS_BATCH)
    line = line_of(asking.FINDS_BATCH, "except torch.cuda")
    assert found(doc)["batch"] == 256 and f"line {line}: the script goes on when the GPU's memory does not suffice" in notes(doc)


def absent(*names):
    return pytest.mark.skipif(any(importlib.util.find_spec(name) for name in names), reason="is installed here")


@absent("wandb")
@pytest.mark.parametrize("text, batch", [(asking.WANDB, 20), (asking.SWEEP, 25)])
def test_what_a_logger_that_is_not_there_was_told_is_known(tmp_path, on_cuda, text, batch):
    doc = captured(tmp_path, text)
    assert found(doc)["batch"] == batch and "wandb is not installed: it is stood in for" in notes(doc)
    assert doc["provenance"]["libraries"]["wandb"] == "a stand-in"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.step.gz", "train.py"]


@absent("mlflow", "neptune", "comet_ml", "tensorboardX", "tensorboard")
def test_loggers_that_are_not_there_say_nothing(tmp_path, on_cuda):
    assert found(captured(tmp_path, asking.LOGGERS))["batch"] == 20


@absent("wandb", "deepspeed")
def test_an_import_that_the_script_can_do_without_fails_as_it_would(tmp_path, on_cuda):
    assert found(captured(tmp_path, asking.OPTIONAL))["batch"] == 20


@absent("deepspeed", "fairscale")
@pytest.mark.parametrize("text, part, words", [
    (asking.DEEPSPEED, "deepspeed.initialize", "DeepSpeed's engine is not modelled: run the script without it"),
    (asking.FAIRSCALE, "net = FSDP(net)", "FairScale is not modelled: use torch.distributed.fsdp in its place")])
def test_what_is_not_modelled_is_refused_where_it_begins(tmp_path, on_cuda, text, part, words):
    code, doc, said = run(tmp_path, text)
    assert (code, doc) == (3, None) and f"train.py line {line_of(text, part)}: {words}" in said, said


@absent("horovod")
def test_horovod_is_forecast_as_ddp(tmp_path, on_cuda):
    doc = captured(tmp_path, asking.HOROVOD, flags=TWO)
    facts = found(doc)
    assert (facts["parallel"], facts["gpus"], facts["batch"], facts["optimizer"]) == ("ddp", 2, 20, "sgd")
    assert "Horovod is forecast as DistributedDataParallel" in notes(doc)
    assert "parallel" not in found(captured(tmp_path, asking.HOROVOD))


def test_ranks_that_meet_by_a_store(tmp_path, on_cuda):
    facts = found(captured(tmp_path, asking.RENDEZVOUS, flags=TWO))
    assert (facts["parallel"], facts["gpus"], facts["batch"]) == ("ddp", 2, 20)


def test_a_function_that_elastic_launches(tmp_path, on_cuda):
    assert found(captured(tmp_path, asking.ELASTIC))["batch"] == 20


def test_a_launcher_within_a_script_is_named(tmp_path, on_cuda):
    code, _, said = run(tmp_path, asking.LAUNCHES)
    assert code == 3 and "train.py line 3 starts another script" in said and "inner.py --lr 0.1" in said and "give that one" in said


def test_checkpoints_of_shards_that_lie_on_the_host(tmp_path, on_cuda):
    doc = captured(tmp_path, asking.SHARDED, flags=TWO)
    facts = found(doc)
    assert (facts["parallel"], facts["fsdp-cpu-offload"], facts["gpus"], facts["batch"]) == ("fsdp", True, 2, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.step.gz", "train.py"]


def test_an_optimizer_that_shares_its_state(tmp_path, on_cuda):
    doc = captured(tmp_path, asking.REDUNDANT, flags=TWO)
    assert (found(doc)["parallel"], found(doc)["optimizer"]) == ("ddp", "adam")
    assert "ZeroRedundancyOptimizer is not modelled: the optimizer's state is counted whole on each GPU" in notes(doc)
