"""observer.attach(): PyTorch's hooks on real models."""

import copy
import pickle

import pytest
import torch

import stoker
from observing import observer, read, sgd, small_model, train

PHASES = ("forward", "loss", "backward", "optimizer")


def seen(row):
    return [name for name in PHASES if row[f"{name}_ns"]]


def attached(tmp_path, model, optimizer, **options):
    return observer(tmp_path).attach(model, optimizer, **options)


def test_a_loop_that_knows_nothing_of_observing(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    train(model, optimizer, 5, batch=6)
    found = read(recorder)
    assert len(found.rows) == 5
    for row in found.rows:
        assert seen(row) == list(PHASES)
        assert (row["samples"], row["forwards"], row["backwards"], row["optimizer_steps"]) == (6, 1, 1, 1)
        assert (row["kind"], row["end"]) == ("train", "ok")
    assert found.header["model"] == {"class": "Sequential", "count": 212, "trainable": 212, "bytes": 848}
    assert found.header["precision"] == "fp32" and found.header["hooks"] is True


def test_training_is_the_same_with_and_without(tmp_path):
    plain, observed = small_model(), small_model()
    torch.manual_seed(1)
    train(plain, sgd(plain), 4)
    optimizer = sgd(observed)
    recorder = attached(tmp_path, observed, optimizer)
    torch.manual_seed(1)
    train(observed, optimizer, 4)
    recorder.close()
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), observed.parameters()))


def test_steps_of_the_loops_own_win(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    for _batch in recorder.batches([torch.randn(6, 8)] * 3):
        with recorder.step():
            train(model, optimizer, 1)
    found = read(recorder)
    assert len(found.rows) == 3 and all(seen(row) == list(PHASES) for row in found.rows)
    assert all(row["wait_ns"] and row["samples"] == 6 for row in found.rows)


def test_accumulation_counts_forward_passes(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    train(model, optimizer, 3, batch=5, micro=4)
    found = read(recorder)
    assert [(row["forwards"], row["backwards"], row["optimizer_steps"], row["samples"]) for row in found.rows] == [(4, 4, 1, 20)] * 3


def test_validation_passes_are_rows_of_their_own(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    train(model, optimizer, 1)
    with torch.no_grad():
        model(torch.randn(9, 8))
    with torch.inference_mode():
        model(torch.randn(9, 8))
    train(model, optimizer, 1)
    found = read(recorder)
    assert [row["kind"] for row in found.rows] == ["train", "validation", "validation", "train"]
    assert found.rows[1]["samples"] == 9 and seen(found.rows[1]) == ["forward"]


def test_a_forward_without_gradients_within_a_step_belongs_to_it(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    with recorder.step():
        with torch.no_grad():
            model(torch.randn(6, 8))
        train(model, optimizer, 1)
    row, = read(recorder).rows
    assert row["kind"] == "train" and row["forwards"] == 2


def test_two_optimizers_end_a_step_together(tmp_path):
    one, two = small_model(), small_model()
    optimizers = [sgd(one), sgd(two)]
    recorder = observer(tmp_path).attach(one, optimizers[0]).attach(two, optimizers[1])
    for _ in range(3):
        train(one, optimizers[0], 1)
        train(two, optimizers[1], 1)
    found = read(recorder)
    assert [row["optimizer_steps"] for row in found.rows] == [2, 2, 2]


def test_a_closure_runs_within_the_optimizers_step(tmp_path):
    model = small_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    recorder = attached(tmp_path, model, optimizer)
    inputs = torch.randn(6, 8)

    def closure():
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    found = read(recorder)
    assert len(found.rows) == 2 and all(row["forwards"] == row["backwards"] >= 2 for row in found.rows)
    assert all(seen(row) == list(PHASES) for row in found.rows)


def test_without_an_optimizer_a_step_ends_with_backward(tmp_path):
    model = small_model()
    recorder = attached(tmp_path, model, None)
    for _ in range(2):
        model(torch.randn(6, 8)).sum().backward()
    assert [seen(row) for row in read(recorder).rows] == [["forward", "loss", "backward"]] * 2


def test_checkpointing_recomputes_within_backward(tmp_path):
    from torch.utils.checkpoint import checkpoint

    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    for _ in range(2):
        checkpoint(model, torch.randn(6, 8), use_reentrant=False).sum().backward()
        optimizer.step()
    assert [(row["forwards"], row["backwards"]) for row in read(recorder).rows] == [(1, 1)] * 2


def test_a_backward_that_raised_does_not_hide_the_next_step(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)

    def explode(gradient):
        raise RuntimeError("no memory")

    for fails in (True, False):
        with pytest.raises(RuntimeError) if fails else recorder.step():
            with recorder.step():
                output = model(torch.randn(6, 8))
                if fails:
                    model[0].weight.register_hook(explode)
                    output.sum().backward()
        model[0].weight._backward_hooks = None
    with recorder.step():
        train(model, optimizer, 1)
    found = read(recorder)
    assert [row["end"] for row in found.rows] == ["exception", "ok", "ok"]
    assert seen(found.rows[-1]) == list(PHASES)


def test_a_step_that_the_scaler_skips_is_marked(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    assert scaler.is_enabled()
    recorder = attached(tmp_path, model, optimizer, scaler=scaler)
    for overflow in (False, True, False):
        loss = model(torch.randn(6, 8)).square().mean()
        scaler.scale(loss * float("inf") if overflow else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    found = read(recorder)
    assert [(row["end"], row["optimizer_steps"]) for row in found.rows] == [("ok", 1), ("skipped", 0), ("ok", 1)]
    assert "step" not in scaler.__dict__ and "update" not in scaler.__dict__, "detached: the scaler is its own again"


def test_autocast_is_seen(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(torch.randn(6, 8)).float().mean()
    loss.backward()
    optimizer.step()
    assert read(recorder).header["precision"] == "amp-bf16"


class Own(torch.nn.Module):
    """The compiler looks into classes of the user's, and passes over the frames of torch.nn's."""

    def __init__(self):
        super().__init__()
        self.inner = small_model()

    def forward(self, inputs):
        return self.inner(inputs) * 2


@pytest.mark.parametrize("how", ["wrapped", "in_place", "hooks_inside"])
def test_compiled_models(tmp_path, how):
    model = Own()
    optimizer = sgd(model)
    recorder = observer(tmp_path)
    if how == "hooks_inside":
        recorder.attach(model, optimizer)
        called = torch.compile(model, backend="eager", fullgraph=True)
    elif how == "in_place":
        model.compile(backend="eager", fullgraph=True)
        called = model
        recorder.attach(called, optimizer)
    else:
        called = torch.compile(model, backend="eager", fullgraph=True)
        recorder.attach(called, optimizer)
    train(called, optimizer, 3)
    found = read(recorder)
    assert len(found.rows) == 3
    if how == "hooks_inside":  # the compiler takes the hooks out; the file says so
        assert [seen(row) for row in found.rows] == [["optimizer"]] * 3
        assert found.end["notes"] == {"forward_unseen": 3}
    else:
        assert [seen(row) for row in found.rows] == [list(PHASES)] * 3


def test_outputs_of_many_shapes(tmp_path):
    class Dictionary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small_model()

        def forward(self, *, inputs):
            return {"count": 3, "nested": [None, {"logits": self.inner(inputs)}]}

    model = Dictionary()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    model(inputs=torch.randn(6, 8))["nested"][1]["logits"].sum().backward()
    optimizer.step()
    row, = read(recorder).rows
    assert seen(row) == list(PHASES) and row["samples"] == 6


def test_detached_models_are_as_before(tmp_path):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    train(model, optimizer, 1)
    recorder.close()
    assert not model._forward_hooks and not model._forward_pre_hooks
    assert not optimizer._optimizer_step_post_hooks and not optimizer._optimizer_step_pre_hooks
    train(model, optimizer, 1)
    assert len(stoker.read_observation(recorder.path).rows) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_of_an_attached_model_work_and_are_not_recorded(tmp_path, copied):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    again = copied(model)
    train(again, sgd(again), 2)
    train(model, optimizer, 1)
    assert len(read(recorder).rows) == 1


@pytest.mark.parametrize("arguments, words", [(("model",), "torch.nn.Module"), ((small_model(), "adam"), "Optimizer")])
def test_what_cannot_be_attached(tmp_path, arguments, words):
    recorder = observer(tmp_path)
    with pytest.raises(stoker.ObservationError, match=words):
        recorder.attach(*arguments)
    recorder.close()


def test_a_fault_in_a_hook_never_reaches_training(tmp_path, monkeypatch, capsys):
    model = small_model()
    optimizer = sgd(model)
    recorder = attached(tmp_path, model, optimizer)
    train(model, optimizer, 1)
    monkeypatch.setattr(recorder.hooks, "_all_stepped", lambda: 1 / 0)
    train(model, optimizer, 2)
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said and said.count("recording stops") == 1
    recorder.close()
