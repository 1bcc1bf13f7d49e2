"""Data sets for tests of the input validation."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Sums(Dataset):
    def __len__(self):
        return 500

    def __getitem__(self, index):
        values = np.random.default_rng(index).random(4096, dtype=np.float32)
        return torch.from_numpy(np.sort(values)), index


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(100))


def dataset():
    return Sums()


def prepare(worker):
    np.random.seed(worker)


def loader():
    return DataLoader(Sums(), batch_size=16, shuffle=True, worker_init_fn=prepare)


def stream():
    return Stream()


def sampled():
    return DataLoader(Sums(), batch_sampler=[[1, 2], [3, 4]])
