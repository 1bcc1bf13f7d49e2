"""The parts that measure a GPU, shared with scripts/measure-time: they need Python and PyTorch and nothing else."""
