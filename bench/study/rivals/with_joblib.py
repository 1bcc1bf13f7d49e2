"""200 trials by joblib, two at a time, with results on disk as its Memory keeps them."""

import joblib
from trial import TRIALS, trial

kept = joblib.Memory("joblib-results", verbose=0).cache(trial)
results = joblib.Parallel(n_jobs=2)(joblib.delayed(kept)(n) for n in range(1, TRIALS + 1))
print("results", len(results))
