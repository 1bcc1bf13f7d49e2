"""200 trials by Ray Tune, two at a time; gone on with by Tuner.restore."""

import os

import ray
from ray import tune
from trial import TRIALS, trial

FOLDER = os.path.abspath("ray-results")


def objective(config):
    tune.report({"score": trial(config["n"])})


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
if tune.Tuner.can_restore(FOLDER + "/rivals"):
    tuner = tune.Tuner.restore(FOLDER + "/rivals", objective, resume_unfinished=True, restart_errored=True)
else:
    tuner = tune.Tuner(objective, param_space={"n": tune.grid_search(list(range(1, TRIALS + 1)))},
                       run_config=tune.RunConfig(name="rivals", storage_path=FOLDER, verbose=0))
results = tuner.fit()
print("results", sum("score" in (result.metrics or {}) for result in results))
