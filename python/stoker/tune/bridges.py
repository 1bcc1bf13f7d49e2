"""What other tuners ask of Stoker: whether a trial is worth starting, and with which batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import binary


class Gate:
    """Forecasts a configuration before it runs, and says why it should not.

    model, gpu     of `stoker predict`; other keywords are its settings (precision="amp-fp16")
    batch          name of the parameter that is the batch
    settings       name of a parameter -> name of a setting of `stoker predict`: {"workers": "workers"}
    slowest        samples/s below which a trial is refused
    dearest        money for a whole run (epochs=, samples= and price= among the settings) above which it is
    """

    def __init__(self, model: str, gpu: str, *, batch: str = "batch", settings: dict[str, str] | None = None,
                 slowest: float | None = None, dearest: float | None = None, **fixed: Any):
        self.model, self.gpu, self.batch, self.settings, self.fixed = model, gpu, batch, dict(settings or {}), fixed
        self.slowest, self.dearest = slowest, dearest
        self._known: dict = {}

    def forecast(self, parameters: dict) -> dict:
        asked = {**self.fixed, **{name: parameters[key] for key, name in self.settings.items() if key in parameters}}
        if self.batch in parameters:
            asked["batch"] = parameters[self.batch]
        key = tuple(sorted((name, str(value)) for name, value in asked.items()))
        if key not in self._known:
            self._known[key] = binary.predict(self.model, self.gpu, **asked)
        return self._known[key]

    def refusal(self, parameters: dict) -> str:
        """Why these parameters should not be tried; empty: they should."""
        found = self.forecast(parameters)
        if not found["memory"]["fits"]:
            return "by forecast out of memory"
        rate = found["throughput_samples_per_s"]["value"]
        if self.slowest is not None and rate < self.slowest:
            return f"by forecast {rate:.4g} samples/s, below {self.slowest:.4g}"
        cost = found.get("run_cost") or {}
        if self.dearest is not None and cost.get("value", 0) > self.dearest:
            return f"by forecast it costs {cost['value']:.3g}, above {self.dearest:.3g}"
        return ""


def optuna_gate(gate: Gate, trial: Any) -> None:
    """At the beginning of an Optuna objective, behind its suggestions: prunes a trial that would not fit, with the reason.

        gate = stoker.Gate("resnet50", "v100-16gb", batch="batch")
        def objective(trial):
            batch = trial.suggest_categorical("batch", [64, 128, 256, 512])
            stoker.optuna_gate(gate, trial)
    """
    import optuna

    reason = gate.refusal(trial.params)
    if reason:
        trial.set_user_attr("stoker", reason)
        raise optuna.TrialPruned(reason)


def optuna_pruner(gate: Gate, otherwise: Any = None) -> Any:
    """A pruner for optuna.create_study(pruner=...) that refuses by forecast, and else leaves the trial to another, such as MedianPruner().

    Optuna asks its pruner in trial.should_prune(): at the beginning of an objective, behind its suggestions, that refuses a trial before
    it runs; where it is asked behind the first report alone, the trial ends there.
    """
    import optuna

    class ForecastPruner(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            reason = gate.refusal(trial.params)
            if reason:
                optuna.logging.get_logger("optuna").info(f"Trial {trial.number} is refused: {reason}")
                return True
            return otherwise is not None and otherwise.prune(study, trial)

    return ForecastPruner()


def ray_stopper(gate: Gate) -> Any:
    """A stopper for Ray Tune (RunConfig(stop=...)) that ends a trial at its first result where the forecast refuses its config.

    Ray asks stoppers with results alone: trials report their config, as Ray's results do under "config".
    """
    from ray.tune import Stopper

    class ForecastStopper(Stopper):
        def __call__(self, trial_id, result):
            return bool(gate.refusal(result.get("config") or {}))

        def stop_all(self):
            return False

    return ForecastStopper()


def hf_search_space(space: Callable, gate: Gate) -> Callable:
    """A `hp_space` for Hugging Face's Trainer.hyperparameter_search(backend="optuna") whose misfits are pruned before they run.

        trainer.hyperparameter_search(hp_space=stoker.hf_search_space(my_space, Gate(..., batch="per_device_train_batch_size")))
    """

    def checked(trial):
        chosen = space(trial)
        optuna_gate(gate, trial)
        return chosen

    return checked


def lightning_batch(module_or_data: Any, gate: Gate, batches: Iterable[int], name: str = "batch_size", threshold: float = 0.9) -> int:
    """Sets `batch_size` of a LightningModule or LightningDataModule without a trial: the smallest of `batches` that fits and reaches
    `threshold` of the best forecast throughput, in place of Tuner.scale_batch_size, which runs until memory is out."""
    rates = {batch: gate.forecast({gate.batch: batch}) for batch in sorted(batches)}
    fitting = {batch: found["throughput_samples_per_s"]["value"] for batch, found in rates.items() if found["memory"]["fits"]}
    if not fitting:
        raise binary.StokerError(f"by forecast none of the batches {sorted(batches)} fits", binary.EXIT_NO)
    best = max(fitting.values())
    chosen = next(batch for batch, rate in fitting.items() if rate >= threshold * best)
    # A module may hold it as an attribute, among its hparams (save_hyperparameters()), or both: its checkpoint tells the latter.
    owners = [owner for owner in (module_or_data, getattr(module_or_data, "hparams", None)) if owner is not None and hasattr(owner, name)]
    if not owners:
        raise binary.StokerError(f"the object has no {name} to set")
    for owner in owners:
        setattr(owner, name, chosen)
    return chosen
