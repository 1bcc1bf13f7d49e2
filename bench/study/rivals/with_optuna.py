"""200 trials by Optuna's grid in an SQLite file, two joblib processes at a time; gone on with as its documentation says."""

import joblib
import optuna
from optuna.trial import TrialState
from trial import TRIALS, trial

optuna.logging.set_verbosity(optuna.logging.ERROR)
STORAGE = "sqlite:///optuna.db"
GRID = {"n": list(range(1, TRIALS + 1))}


def worker(_):
    sampler = optuna.samplers.GridSampler(GRID)
    study = optuna.create_study(storage=STORAGE, study_name="rivals", sampler=sampler, load_if_exists=True)
    study.optimize(lambda t: trial(t.suggest_int("n", 1, TRIALS)))


if __name__ == "__main__":
    optuna.create_study(storage=STORAGE, study_name="rivals", load_if_exists=True)
    joblib.Parallel(n_jobs=2)(joblib.delayed(worker)(i) for i in range(2))
    study = optuna.load_study(storage=STORAGE, study_name="rivals")
    print("results", len({t.params["n"] for t in study.get_trials(states=(TrialState.COMPLETE,))}))
