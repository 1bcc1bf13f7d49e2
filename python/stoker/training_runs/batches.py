"""Where a job's batches come from: the same synthetic one again and again, or the user's loader."""

from __future__ import annotations

import torch
from torch.utils import _pytree as pytree

from .. import model_build
from .. import precision as precisions
from ..errors import CaptureError
from . import values


def _tensor(leaf) -> bool:
    return isinstance(leaf, torch.Tensor)


class _OnDevice:
    """Moves a batch to the job's device and keeps it until the next one is there, as a loop's variable does."""

    def __init__(self, job):
        self.job, self.device, self.cuda = job, job.device, job.cuda
        self.dtype = precisions.CAST.get(job.precision)
        self.current = None

    def cast(self, leaf):
        """Floating-point inputs have the model's type where the whole model was cast."""
        if _tensor(leaf) and self.dtype is not None and leaf.is_floating_point():
            return leaf.detach().to(self.dtype).requires_grad_(leaf.requires_grad)
        return leaf

    def moved(self, tree, observer):
        if not self.cuda:
            return tree
        with observer.phase("h2d"):
            return pytree.tree_map(lambda x: x.to(self.device, non_blocking=True) if _tensor(x) else x, tree)


class Synthetic(_OnDevice):
    """One batch on the host (pinned for a GPU), copied anew in each step; on the CPU it is used where it lies."""

    def __init__(self, inputs, targets, job):
        super().__init__(job)
        args, kwargs = model_build.split_inputs(inputs)
        self.host = pytree.tree_map(self._prepared, (args, kwargs, targets))

    def _prepared(self, leaf):
        if not _tensor(leaf):
            return leaf
        if leaf.device.type == "cuda" or any(stride == 0 and size > 1 for size, stride in zip(leaf.shape, leaf.stride())):
            leaf = leaf.detach().to("cpu", copy=True).contiguous()  # expanded, or already there: a batch of its own
        leaf = values.filled(self.cast(leaf))
        if self.cuda:
            leaf = leaf.detach().pin_memory()
        return leaf

    def _follow(self, host, moved) -> None:
        for here, there in zip(pytree.tree_leaves(host), pytree.tree_leaves(moved)):
            if values.whole(here):
                self.job.lookups.follow(there, here)

    def next(self, observer):
        self.current = self.moved(self.host, observer)
        if self.job.lookups is not None:
            self._follow(self.host, self.current)
        return self.current

    def make_targets(self, described) -> tuple:
        """Targets of the kind that the loss wants: (name, shape, dtype) each. Asked once, in the first step."""
        made = tuple(self._prepared(torch.zeros(shape, dtype=dtype)) for _, shape, dtype in described)
        self.host = (*self.host[:2], made)
        there = pytree.tree_map(lambda x: x.to(self.device), made)
        self._follow(made, there)
        self.current = (*self.current[:2], there)
        return there


class FromLoader(_OnDevice):
    """Batches of the user's loader: as many tensors as the model has inputs, then the targets; or a dict with the names of
    its inputs, whose other tensors are the targets."""

    def __init__(self, loader, inputs, job):
        super().__init__(job)
        self._loader, self._iterator = loader, None
        self._args, self._kwargs = model_build.split_inputs(inputs)

    def _batch(self, observer):
        for _ in range(2):
            if self._iterator is None:
                self._iterator = iter(observer.batches(self._loader))
            batch = next(self._iterator, None)
            if batch is not None:
                return batch
            self._iterator = None
        raise CaptureError(f"--data {self.job.case['data']} has no batches: give a loader that yields some")

    def _split(self, batch):
        if isinstance(batch, dict):
            if not self._kwargs:
                raise CaptureError("the loader's batches are dicts and the model's inputs have no names: return the inputs of "
                                   "the capture function as a dict, or batches as tuples")
            missing = [name for name in self._kwargs if name not in batch]
            if missing:
                raise CaptureError(f"the loader's batches have no {missing[0]!r}, which the model is given: they have "
                                   f"{', '.join(map(str, batch))}")
            return (), {k: batch[k] for k in self._kwargs}, tuple(v for k, v in batch.items() if k not in self._kwargs)
        flat = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
        count = len(self._args) or len(self._kwargs)
        if len(flat) < count:
            raise CaptureError(f"the loader's batches have {len(flat)} parts and the model takes {count} inputs")
        inputs = flat[:count]
        return (inputs, {}, flat[count:]) if self._args else ((), dict(zip(self._kwargs, inputs)), flat[count:])

    def next(self, observer):
        args, kwargs, targets = self._split(self._batch(observer))
        args, kwargs = pytree.tree_map(self.cast, (args, kwargs))
        self.current = self.moved((args, kwargs, targets), observer)
        return self.current

    def make_targets(self, described):
        raise CaptureError(f"the loss takes {len(described)} target(s) and the loader's batches have none beside the model's inputs")
