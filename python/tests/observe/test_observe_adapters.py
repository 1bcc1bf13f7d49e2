"""The callbacks for Hugging Face's and Lightning's trainers: by their protocol, and with the libraries where they are."""

import sys
import types

import pytest
import torch

import stoker
from observing import Clock, observer, read, sgd, small_model
from stoker.observe import huggingface, lightning


class PretendTrainer:
    """Hugging Face's order of events, with 5 ms for a batch, 2 ms each for forward, backward and step, 50 ms to evaluate."""

    def __init__(self, callback, clock):
        self.callback, self.clock = callback, clock
        self.model = small_model()
        self.optimizer = sgd(self.model)

    def event(self, name, **more):
        method = getattr(self.callback, name, None)
        if method:
            method(None, None, None, model=self.model, optimizer=self.optimizer, train_dataloader=None, **more)

    def train(self, steps, micro=1, evaluate=()):
        self.event("on_train_begin")
        self.event("on_epoch_begin")
        for step in range(steps):
            self.clock.ms(5)
            for at in range(micro):
                if at == 0:
                    self.event("on_step_begin")
                loss = self.model(torch.randn(6, 8)).square().mean()
                self.clock.ms(2)
                loss.backward()
                self.clock.ms(2)
                if at < micro - 1:
                    self.event("on_substep_end")
            self.event("on_pre_optimizer_step")
            self.optimizer.step()
            self.event("on_optimizer_step")
            self.event("on_step_end")
            if step in evaluate:
                with torch.no_grad():
                    self.model(torch.randn(6, 8))
                self.clock.ms(50)
                self.event("on_evaluate", metrics={})
        self.event("on_epoch_end")
        self.event("on_train_end")


def test_hugging_faces_events(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock)
    PretendTrainer(huggingface.TrainerEvents(recorder), clock).train(4, micro=2, evaluate=[1])
    found = stoker.read_observation(recorder.path)
    train = [row for row in found.rows if row["kind"] == "train"]
    assert [row["kind"] for row in found.rows] == ["train", "train", "validation", "train", "train"]
    assert [row["wait_ns"] for row in train] == [5e6] * 4, "evaluating is no waiting"
    assert train[2]["gap_ns"] == 55e6
    assert [(row["forwards"], row["backwards"], row["optimizer_steps"], row["samples"]) for row in train] == [(2, 2, 1, 12)] * 4
    assert train[0]["epoch"] == 1 and found.end and found.header["model"]["count"] == 212


class PretendLightning:
    """Lightning's order of events with automatic optimization."""

    def __init__(self, callback, clock, accumulate=1):
        self.callback, self.clock, self.accumulate = callback, clock, accumulate
        self.module = small_model()
        self.sanity_checking = False

    def event(self, name, *arguments):
        method = getattr(self.callback, name, None)
        if method:
            method(self, self.module, *arguments)

    def fit(self, batches, validate=()):
        batch = torch.zeros(6, 8)
        self.sanity_checking = True
        self.validate(batch)
        self.sanity_checking = False
        self.event("on_train_start")
        self.event("on_train_epoch_start")
        for number in range(batches):
            self.clock.ms(5)
            self.event("on_train_batch_start", batch, number)
            self.clock.ms(2)
            self.event("on_before_zero_grad", None)
            self.event("on_before_backward", None)
            self.clock.ms(3)
            self.event("on_after_backward")
            if (number + 1) % self.accumulate == 0:
                self.event("on_before_optimizer_step", None)
                self.clock.ms(1)
            self.event("on_train_batch_end", None, batch, number)
            if number in validate:
                self.validate(batch)
        self.event("on_train_end")
        self.event("on_fit_end")

    def validate(self, batch):
        self.clock.ms(7)
        self.event("on_validation_start")
        self.event("on_validation_batch_start", batch, 0)
        self.clock.ms(20)
        self.event("on_validation_batch_end", None, batch, 0)
        self.event("on_validation_end")


def test_lightnings_events(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock)
    PretendLightning(lightning.TrainerEvents(recorder), clock, accumulate=2).fit(4, validate=[1])
    found = stoker.read_observation(recorder.path)
    assert [row["kind"] for row in found.rows] == ["train", "train", "validation", "train", "train"]
    train = [row for row in found.rows if row["kind"] == "train"]
    assert [row["optimizer_steps"] for row in train] == [0, 1, 0, 1]
    assert [row["wait_ns"] for row in train] == [5e6] * 4
    assert [(row["forward_ns"], row["backward_ns"], row["optimizer_ns"]) for row in train] == [(2e6, 3e6, 0), (2e6, 3e6, 1e6)] * 2
    assert train[0]["samples"] == 6 and found.rows[2]["forward_ns"] == 20e6 and found.rows[2]["wait_ns"] == 0


def test_lightnings_exception(tmp_path):
    recorder = observer(tmp_path)
    events = lightning.TrainerEvents(recorder)
    events.on_train_batch_start(None, None, torch.zeros(2), 0)
    events.on_exception(None, None, torch.OutOfMemoryError("x"))
    found = read(recorder)
    assert [row["end"] for row in found.rows] == ["exception"] and found.exceptions[0]["type"] == "OutOfMemoryError"


@pytest.mark.parametrize("adapter, library, base", [(huggingface, "transformers", "TrainerCallback"),
                                                    (lightning, "lightning.pytorch", "Callback")])
def test_the_library_is_imported_only_when_a_callback_is_made(tmp_path, monkeypatch, adapter, library, base):
    stand_in = types.ModuleType(library)
    setattr(stand_in, base, type(base, (), {"on_init_end": lambda *args, **kwargs: None}))
    monkeypatch.setitem(sys.modules, library, stand_in)
    monkeypatch.setitem(sys.modules, library.partition(".")[0], stand_in)
    made = adapter.callback(tmp_path / "run.obs.jsonl", batch=3)
    assert isinstance(made, getattr(stand_in, base)) and isinstance(made, adapter.TrainerEvents)
    made.observer.close()


def test_a_real_trainer_of_hugging_face(tmp_path):
    pytest.importorskip("accelerate", reason="transformers.Trainer needs accelerate, which is not here")
    transformers = pytest.importorskip("transformers", reason="transformers is not here")
    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=40, n_positions=16)
    data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(24)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=2, gradient_accumulation_steps=2, num_train_epochs=2,
        use_cpu=True, report_to=[], eval_strategy="epoch", save_strategy="no", disable_tqdm=True, logging_steps=2)
    trainer = transformers.Trainer(
        model=transformers.GPT2LMHeadModel(config), args=arguments, train_dataset=data, eval_dataset=data[:4],
        callbacks=[huggingface.callback(tmp_path / "run.obs.jsonl", device="cpu")])
    trainer.train()
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    train = [row for row in found.rows if row["kind"] == "train"]
    assert not found.damaged and found.end and len(train) == 12
    assert {(row["forwards"], row["backwards"], row["optimizer_steps"], row["samples"]) for row in train} == {(2, 2, 1, 4)}
    assert [row["epoch"] for row in train] == [1] * 6 + [2] * 6
    assert all(row[f"{name}_ns"] > 0 for row in train for name in ("wait", "forward", "loss", "backward", "optimizer"))
    assert sum(row["kind"] == "validation" for row in found.rows) >= 2


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_real_trainer_of_lightning(tmp_path, accumulate):
    try:
        import lightning.pytorch as pl
    except ImportError:
        pl = pytest.importorskip("pytorch_lightning", reason="neither lightning nor pytorch_lightning is here")

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = small_model()

        def training_step(self, batch, number):
            return self.inner(batch).square().mean()

        def validation_step(self, batch, number):
            self.inner(batch)

        def configure_optimizers(self):
            return sgd(self)

    loader = torch.utils.data.DataLoader(torch.randn(24, 8), batch_size=4)
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, accumulate_grad_batches=accumulate, default_root_dir=tmp_path,
                         callbacks=[lightning.callback(tmp_path / "run.obs.jsonl", device="cpu")])
    trainer.fit(Module(), loader, loader)
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    train = [row for row in found.rows if row["kind"] == "train"]
    assert not found.damaged and found.end and len(train) == 12 and {row["samples"] for row in train} == {4}
    assert sum(row["optimizer_steps"] for row in train) == 12 / accumulate
    assert all(row[f"{name}_ns"] > 0 for row in train for name in ("wait", "forward", "backward"))
    assert all((row["optimizer_ns"] > 0) == (row["optimizer_steps"] > 0) for row in train)
    assert sum(row["kind"] == "validation" for row in found.rows) == 12
