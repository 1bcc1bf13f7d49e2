"""The largest batch under set_per_process_memory_fraction: doubling, then halving the gap; each try a fresh process."""

FIRST = 8
MOST_TRIES = 9


def tries(run, first=FIRST, most=MOST_TRIES):
    """Yields (batch, row) for each try. `run(batch)` gives a row; anything but "ok" and "oom" ends the search."""
    good, bad, batch = 0, None, first
    for _ in range(most):
        row = run(batch)
        yield batch, row
        if row["status"] == "ok":
            good = batch
        elif row["status"] == "oom":
            bad = batch
        else:
            return
        if bad is not None and bad - good <= 1:
            return
        batch = 2 * good if bad is None else (good + bad) // 2
