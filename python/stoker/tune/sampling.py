"""Values of a configuration as Optuna draws them: `stoker tune --sampler tpe` asks by two files, and keeps the state itself."""

from __future__ import annotations

import json
import pathlib
import sys

from ..arguments import Parser
from ..plain import printable_lines

NO_OPTUNA = 3


def run(arguments: list) -> int:
    """tune-sample QUESTION ANSWER: reads what is known of a search and writes the values to try next."""
    parser = Parser(prog="stoker tune-sample", description="What `stoker tune` asks Optuna: the values to try next.")
    parser.add_argument("question", help="file of what is known of the search")
    parser.add_argument("answer", help="file for the values")
    files = parser.parse_args(arguments)
    asked = json.loads(pathlib.Path(files.question).read_text())
    try:
        values = sample(asked)
    except ImportError as error:
        sys.stderr.write(f"stoker: {printable_lines(error)}\n")
        return NO_OPTUNA
    pathlib.Path(files.answer).write_text(json.dumps(values))
    return 0


def sample(asked: dict) -> list:
    """The values, as texts, of the configuration that is asked for.

    asked  sampler ("tpe", "sobol"), seed, index of the configuration from 0, space (name and either values or low and high of
           a logarithmic scale), known (values, score, step, whether it ended)
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = asked["space"]
    if asked["sampler"] == "sobol":
        return _sobol(optuna, space, asked["seed"], asked["index"])
    distributions = {dimension["name"]: _distribution(optuna, dimension) for dimension in space}
    sampler = optuna.samplers.TPESampler(seed=asked["seed"] + asked["index"], multivariate=False, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for known in asked["known"]:
        parameters = {d["name"]: value if "values" in d else float(value) for d, value in zip(space, known["values"])}
        state = optuna.trial.TrialState
        ended = state.COMPLETE if known["score"] is not None else state.FAIL if known["ended"] else state.RUNNING
        study.add_trial(optuna.trial.create_trial(params=parameters, distributions=distributions, state=ended,
                                                  value=known["score"] if ended == state.COMPLETE else None))
    trial = study.ask(distributions)
    return [_text(dimension, trial.params[dimension["name"]]) for dimension in space]


def _distribution(optuna, dimension: dict):
    if "values" in dimension:
        return optuna.distributions.CategoricalDistribution(dimension["values"])
    return optuna.distributions.FloatDistribution(dimension["low"], dimension["high"], log=True)


def _sobol(optuna, space: list, seed: int, index: int) -> list:
    """A point of a scrambled Sobol sequence; choices are parts of an interval, so that they are spread, too."""
    distributions = {d["name"]: optuna.distributions.FloatDistribution(0, 1) for d in space}
    study = optuna.create_study(sampler=optuna.samplers.QMCSampler(qmc_type="sobol", scramble=True, seed=seed,
                                                                   warn_independent_sampling=False))
    study.add_trial(optuna.trial.create_trial(params=dict.fromkeys(distributions, 0.5), distributions=distributions, value=0))
    trial = None
    for _ in range(index + 1):
        trial = study.ask(distributions)
        study.tell(trial, 0)
    assert trial is not None
    values = []
    for dimension in space:
        place = trial.params[dimension["name"]]
        if "values" in dimension:
            choices = dimension["values"]
            values.append(choices[min(int(place * len(choices)), len(choices) - 1)])
        else:
            values.append(_text(dimension, dimension["low"] * (dimension["high"] / dimension["low"]) ** place))
    return values


def _text(dimension: dict, value) -> str:
    return value if "values" in dimension else f"{value:.4g}"
