"""Real PyTorch DataLoaders on this machine, measured for comparison with forecasts (docs/validating-input.md).

A *scenario* is a data set with its collate; a *point* is one setting of the DataLoader and of the loop that uses it;
a *repetition* is one timed epoch of a point in a process of its own. The result is a rows file.
"""
