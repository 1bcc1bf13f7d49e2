"""200 trials by submitit on this machine, two at a time (it starts all that it is given at once); ids are kept to go on."""

import json
import pathlib
import sys

import submitit
from trial import TRIALS, trial

IDS = pathlib.Path("submitit-ids.json")
executor = submitit.LocalExecutor("submitit-results", python=sys.executable)
executor.update_parameters(timeout_min=5)
ids = json.loads(IDS.read_text()) if IDS.exists() else []
results = [submitit.LocalJob("submitit-results", i, tasks=[0]).result() for i in ids]
while len(ids) < TRIALS:
    jobs = [executor.submit(trial, n) for n in range(len(ids) + 1, min(len(ids) + 2, TRIALS) + 1)]
    ids += [job.job_id for job in jobs]
    IDS.write_text(json.dumps(ids))
    results += [job.result() for job in jobs]
print("results", len(results))
