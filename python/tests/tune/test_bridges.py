"""Gates of forecasts before trials of other tuners: each against the real library, where it is installed."""

import pytest

import stoker
from stoker.binary import StokerError
from stoker_binary import STOKER  # noqa: F401

MODEL, GPU = "resnet50", "v100-16gb"  # of which 4,096 pictures do not fit


def test_a_gate_refuses_what_does_not_fit():
    gate = stoker.Gate(MODEL, GPU, batch="size", slowest=100)
    assert gate.refusal({"size": 64, "lr": 0.1}) == ""
    assert gate.refusal({"size": 4096}) == "by forecast out of memory"
    assert "below" in stoker.Gate(MODEL, GPU, batch="size", slowest=1e6).refusal({"size": 64})


def test_a_gate_refuses_what_costs_too_much():
    run = {"epochs": 90, "samples": 1_281_167, "price": 3}
    cost = stoker.Gate(MODEL, GPU, **run).forecast({"batch": 128})["run_cost"]["value"]
    assert "it costs" in stoker.Gate(MODEL, GPU, dearest=cost / 2, **run).refusal({"batch": 128})
    assert stoker.Gate(MODEL, GPU, dearest=cost * 2, **run).refusal({"batch": 128}) == ""


def test_the_batch_goes_wherever_the_object_keeps_it():
    class Hparams(dict):
        __getattr__, __setattr__ = dict.get, dict.__setitem__

    class Module:
        batch_size = 8
        hparams = Hparams(batch_size=8)

    module, gate = Module(), stoker.Gate(MODEL, GPU)
    chosen = stoker.lightning_batch(module, gate, [16, 32, 64, 128, 4096])
    assert chosen in (16, 32, 64, 128)
    assert (module.batch_size, module.hparams.batch_size) == (chosen, chosen)
    with pytest.raises(StokerError, match="none of the batches"):
        stoker.lightning_batch(module, gate, [4096])
    with pytest.raises(StokerError, match="no batch_size"):
        stoker.lightning_batch(object(), gate, [16])


def test_optuna_prunes_before_a_trial_runs():
    optuna = pytest.importorskip("optuna")
    gate = stoker.Gate(MODEL, GPU, batch="batch")
    ran = []

    def objective(trial):
        batch = trial.suggest_categorical("batch", [64, 4096])
        stoker.optuna_gate(gate, trial)
        ran.append(batch)
        return 0.0

    study = optuna.create_study(sampler=optuna.samplers.GridSampler({"batch": [64, 4096]}))
    study.optimize(objective)
    assert ran == [64]
    assert [t.user_attrs["stoker"] for t in study.trials if t.user_attrs] == ["by forecast out of memory"]
    assert [t.state.name for t in study.trials if t.user_attrs] == ["PRUNED"]


def test_optunas_pruner_refuses_and_leaves_the_rest_to_another():
    optuna = pytest.importorskip("optuna")
    gate, asked = stoker.Gate(MODEL, GPU), []

    class Note(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            asked.append(trial.number)
            return trial.params["batch"] == 32

    def objective(trial):
        batch = trial.suggest_categorical("batch", [32, 64, 4096])
        if early and trial.should_prune():
            raise optuna.TrialPruned
        trial.report(1.0, 1)
        reported.append(batch)
        if trial.should_prune():
            raise optuna.TrialPruned
        return 0.0

    for early in (True, False):
        reported: list = []
        grid = optuna.samplers.GridSampler({"batch": [32, 64, 4096]})
        study = optuna.create_study(sampler=grid, pruner=stoker.optuna_pruner(gate, Note()))
        study.optimize(objective)
        states = {trial.params["batch"]: trial.state.name for trial in study.trials}
        assert states == {32: "PRUNED", 64: "COMPLETE", 4096: "PRUNED"}
        assert sorted(reported) == ([64] if early else [32, 64, 4096])
    assert asked


def test_ray_ends_a_refused_trial_at_its_first_result(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    tune = pytest.importorskip("ray.tune")
    monkeypatch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # its servers give up after fixed times, which a busy machine misses
        pytest.skip(f"Ray did not start here: {error}")
    try:
        def train(config):
            for step in range(3):
                tune.report({"loss": 1.0 / (step + 1)})

        gate = stoker.Gate(MODEL, GPU, batch="batch")
        results = tune.Tuner(train, param_space={"batch": tune.grid_search([64, 4096])},
                             tune_config=tune.TuneConfig(max_concurrent_trials=1),
                             run_config=tune.RunConfig(stop=stoker.ray_stopper(gate), storage_path=str(tmp_path), verbose=0)).fit()
        assert {result.config["batch"]: result.metrics["training_iteration"] for result in results} == {64: 3, 4096: 1}
        assert not results.errors
    finally:
        ray.shutdown()


def test_transformers_search_prunes_before_it_trains(tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    config = transformers.BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
                                     max_position_embeddings=8, num_labels=2)
    rows = [{"input_ids": torch.arange(4) + i % 8, "labels": torch.tensor(i % 2)} for i in range(16)]
    trained = []

    class Note(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            trained.append(args.per_device_train_batch_size)

    settings = transformers.TrainingArguments(str(tmp_path), max_steps=1, use_cpu=True, report_to=[], save_strategy="no",
                                              eval_strategy="steps", eval_steps=1, disable_tqdm=True)
    trainer = transformers.Trainer(model_init=lambda: transformers.BertForSequenceClassification(config), args=settings,
                                   train_dataset=rows, eval_dataset=rows, callbacks=[Note()])
    gate = stoker.Gate(MODEL, GPU, batch="per_device_train_batch_size")
    asked = iter([4, 4096, 8])

    def space(trial):
        batch = next(asked)
        return {"per_device_train_batch_size": trial.suggest_int("per_device_train_batch_size", batch, batch),
                "learning_rate": trial.suggest_float("learning_rate", 1e-5, 1e-3, log=True)}

    best = trainer.hyperparameter_search(hp_space=stoker.hf_search_space(space, gate), backend="optuna", n_trials=3, direction="minimize")
    assert trained == [4, 8]
    assert best.run_id in ("0", "2")


def test_lightning_trains_with_the_batch_that_was_set(tmp_path):
    lightning = pytest.importorskip("lightning")
    import torch

    class Module(lightning.LightningModule):
        def __init__(self, batch_size=8, own=False):
            super().__init__()
            self.save_hyperparameters()
            if own:
                self.batch_size = batch_size
            self.layer, self.seen = torch.nn.Linear(4, 1), []

        def train_dataloader(self):
            size = self.batch_size if hasattr(self, "batch_size") else self.hparams.batch_size
            return torch.utils.data.DataLoader(torch.randn(512, 4), batch_size=size)

        def training_step(self, batch, _):
            self.seen.append(len(batch))
            return self.layer(batch).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    gate = stoker.Gate(MODEL, GPU)
    for own in (False, True):
        module = Module(own=own)
        chosen = stoker.lightning_batch(module, gate, [16, 32, 64, 4096])
        trainer = lightning.Trainer(max_steps=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                    enable_model_summary=False, default_root_dir=str(tmp_path))
        trainer.fit(module)
        assert module.seen == [chosen] and chosen in (16, 32, 64)
        trainer.save_checkpoint(tmp_path / "one.ckpt")
        assert torch.load(tmp_path / "one.ckpt", weights_only=False)["hyper_parameters"]["batch_size"] == chosen
