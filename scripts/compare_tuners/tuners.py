"""The tuners: each a function of a table, a seed and a budget to the evaluations that it asked for, in their order."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from .table import EVALUATIONS, Table

LOW, HIGH = 1e-4, 1.0
HERE = pathlib.Path(__file__).resolve().parent
AT_STEP = re.compile(r"trial (\d+) (?:\S+ )?at step ([0-9.]+)")
TO_ITS_END = re.compile(r"trial (\d+) ran to its end")


def optuna_tuner(sampler_of, pruner_of):
    def run(table: Table, seed: int, budget: int) -> list:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(direction="maximize" if table.more else "minimize", sampler=sampler_of(optuna, seed),
                                    pruner=pruner_of(optuna))
        events: list = []
        while len(events) < budget:
            trial = study.ask()
            batch = trial.suggest_categorical("batch", table.batches)
            optimizer = trial.suggest_categorical("optimizer", table.optimizers)
            rate = table.nearest(trial.suggest_float("lr", LOW, HIGH, log=True))
            pruned, value = False, math.nan
            for evaluation in range(1, EVALUATIONS + 1):
                value = table.value(batch, optimizer, rate, evaluation)
                events.append((batch, optimizer, rate, evaluation))
                trial.report(value, evaluation)
                pruned = trial.should_prune()
                if pruned or math.isnan(value) or len(events) == budget:
                    break
            states = optuna.trial.TrialState
            if pruned:
                study.tell(trial, state=states.PRUNED)
            elif math.isnan(value):
                study.tell(trial, state=states.FAIL)
            else:
                study.tell(trial, value)
        return events

    return run


def ray_asha(table: Table, seed: int, budget: int) -> list:
    os.environ.update(TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1", RAY_AIR_NEW_OUTPUT="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.basic_variant import BasicVariantGenerator

    if not ray.is_initialized():
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR", _temp_dir=os.environ.get("RAY_TMPDIR"))
    events: list = []

    class Replay(tune.Trainable):
        def setup(self, config):
            self.reset_config(config)

        def reset_config(self, config):
            self.place = (config["batch"], config["optimizer"], table.nearest(config["lr"]))
            return True

        def step(self):
            evaluation = self.iteration + 1
            return {"metric": table.value(*self.place, evaluation), "place": [*self.place, evaluation], "done": evaluation == EVALUATIONS}

        def save_checkpoint(self, checkpoint_dir):  # Ray pauses by it
            return {"place": self.place}

        def load_checkpoint(self, checkpoint):
            self.place = checkpoint["place"]

    class Note(tune.Stopper):
        def __call__(self, trial_id, result):
            if len(events) < budget:
                events.append(tuple(result["place"]))
            return False

        def stop_all(self):
            return len(events) >= budget

    with tempfile.TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            Replay,
            param_space={"batch": tune.choice(table.batches), "optimizer": tune.choice(table.optimizers), "lr": tune.loguniform(LOW, HIGH)},
            tune_config=tune.TuneConfig(
                metric="metric", mode="max" if table.more else "min", num_samples=10 * budget, reuse_actors=True,
                scheduler=ASHAScheduler(max_t=EVALUATIONS, grace_period=1, reduction_factor=3),
                search_alg=BasicVariantGenerator(random_state=seed, max_concurrent=1)),
            run_config=tune.RunConfig(stop=Note(), storage_path=folder, verbose=0))
        tuner.fit()
    return events


def stoker_tuner(method: str, *flags: str, optimizer: str = ""):
    """`optimizer`: for a method that varies none."""

    def run(table: Table, seed: int, budget: int) -> list:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "table.json"
            file.write_text(json.dumps(table.as_replay()))
            vary = [] if optimizer else ["--vary", "optimizer=" + ",".join(table.optimizers)]
            words = [os.environ.get("STOKER_BINARY", "stoker"), "tune", "--store", "tune.db", "--quiet", "--json", "--method", method,
                     "--at-most", "1", "--seed", str(seed), "--budget-steps", str(budget), "--metric", table.metric,
                     "--direction", "max" if table.more else "min",
                     "--batch", ",".join(map(str, table.batches)), "--lr", f"{LOW:.0e}..{HIGH:.0e}", *vary, *flags, "--",
                     sys.executable, "-S", "-E", str(HERE / "replay.py"), str(file), "--batch", "{batch}", "--lr", "{lr}",
                     "--optimizer", optimizer or "{optimizer}"]
            env = dict(os.environ, STOKER_PYTHON=sys.executable)
            done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                raise RuntimeError(done.stderr)
            return _events(table, json.loads(done.stdout), _trials(words[0], folder), optimizer)

    return run


def _trials(binary: str, folder: str) -> dict:
    """Trial -> its values by axis."""
    done = subprocess.run([binary, "study", "tune.db", "--json"], cwd=folder, capture_output=True, text=True, check=True)
    return {trial["trial"]: trial["values"] for trial in json.loads(done.stdout)["trials"]}


def _events(table: Table, told: dict, trials: dict, optimizer: str) -> list:
    """What the search counted of each trial: its decisions say where each stopped."""
    last: dict = {}
    for decision in told["decisions"]:
        for trial, step in AT_STEP.findall(decision["why"]):
            last[int(trial)] = math.floor(float(step))
        for trial in TO_ITS_END.findall(decision["why"]):
            last[int(trial)] = EVALUATIONS
    events, at = [], {}
    for trial, values in sorted(trials.items()):
        config, stage = values.get("config"), values.get("stage")
        # A trial that measures a batch ends after a few steps: it is counted as one evaluation.
        asked = int(float(values.get("steps") or 0)) or EVALUATIONS
        end = 1 if stage == "batch" else last.get(trial, asked)
        place = (int(values["batch"]), values.get("optimizer") or optimizer, table.nearest(float(values["lr"])))
        for evaluation in range(at.get(config, 0) + 1, end + 1):
            events.append((*place, evaluation))
        if stage == "search":
            at[config] = end
    return events


def _tpe(optuna, seed):
    return optuna.samplers.TPESampler(seed=seed)


def _random(optuna, seed):
    return optuna.samplers.RandomSampler(seed=seed)


LADDER = ("--min-steps", "1", "--max-steps", str(EVALUATIONS))
TUNERS = {
    "random, no stopping": optuna_tuner(_random, lambda optuna: optuna.pruners.NopPruner()),
    "optuna tpe, median": optuna_tuner(_tpe, lambda optuna: optuna.pruners.MedianPruner()),
    "optuna tpe, halving": optuna_tuner(_tpe, lambda optuna: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)),
    "optuna random, halving": optuna_tuner(
        _random, lambda optuna: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)),
    "ray asha": ray_asha,
    "stoker asha": stoker_tuner("asha", "--trials", "10000", *LADDER),
    "stoker hyperband": stoker_tuner("hyperband", *LADDER),
    "stoker random, median": stoker_tuner("random", "--trials", "10000", "--max-steps", str(EVALUATIONS)),
    "stoker tpe, median": stoker_tuner("tpe", "--trials", "10000", "--max-steps", str(EVALUATIONS)),
    "stoker greedy (adam)": stoker_tuner("greedy", optimizer="adam"),
}
