"""Which of the script's threads trains: that one is recorded, and what others do meanwhile (prefetching, evaluating) is not.

The turn goes to whatever thread calls a model that trains, a backward or an optimizer's step, once the thread that had it is not
within such a call. Two threads that compute parts of one step at the same time cannot be told apart, and are refused.
"""

from __future__ import annotations

import os
import threading
import time

import torch

from ...tracing import fake_mode
from .. import sites

_lock = threading.RLock()


def one_at_a_time():
    """What is held while an operator runs on fake tensors: their mode keeps notes of its own that threads would mix up."""
    return _lock


def _renew() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent's may have held the one that the child got


os.register_at_fork(after_in_child=_renew)


class FakeMode(fake_mode.FakeMode):
    """One for several threads: whether a kernel is being asked for its result, which decides what device a fake tensor names, is a
    matter of each."""

    _inside = threading.local()

    @property
    def in_kernel_invocation(self) -> bool:
        return getattr(self._inside, "now", False)

    @in_kernel_invocation.setter
    def in_kernel_invocation(self, inside: bool) -> None:
        self._inside.now = inside


_PATIENCE_S, _LOOK_S = 30.0, 0.001  # how long another thread's call is waited for, since that one may wait for this


class Turns:
    """The watcher's: who has the turn."""

    def __init__(self, watcher):
        self._watcher = watcher
        self._home = threading.get_ident()  # the thread that trains; before it does, the main one
        self._trains = False
        self._of_step: set = set()  # threads that have computed in this step
        self._local = threading.local()  # depth of modules that a thread beside the training runs
        self._loaded = [False, False]  # whether the thread that trains has taken a batch itself: in the step before, in this one

    def here(self) -> bool:
        return self._home == threading.get_ident()

    def take(self) -> None:
        """The thread that calls this trains."""
        me = threading.get_ident()
        if self._home != me:
            self._wait()
        self._home, self._trains = me, True
        self._of_step.add(me)

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while self._is_busy() and time.monotonic() < end:
            time.sleep(_LOOK_S)

    def _is_busy(self) -> bool:
        watcher = self._watcher
        alive = any(thread.ident == self._home for thread in threading.enumerate())
        return alive and bool(watcher.depth or watcher.in_backward or watcher.stepping)

    def enter(self, module) -> bool:
        """A module is called. Whether that belongs to the training."""
        away = getattr(self._local, "depth", 0)
        here = self.here()
        if not away and (not here or self._watcher.depth == 0) and _trains(module):
            self.take()
            return True
        if not away and here:
            return True
        self._local.depth = away + 1
        return False

    def leave(self) -> bool:
        """A module's call is over. Whether it was one beside the training."""
        away = getattr(self._local, "depth", 0)
        if away:
            self._local.depth = away - 1
        return bool(away)

    def loads(self) -> bool:
        """Whether a batch that this thread takes is one of the training: where that thread takes none itself, another loads for it."""
        if self.here():
            self._loaded[1] = True
        return self.here() or not any(self._loaded)

    def step_ended(self) -> None:
        self._of_step = {self._home}
        self._loaded = [self._loaded[1], False]

    def beside(self, args) -> None:
        """A thread that has not the turn computes on the device."""
        world = self._watcher._world
        if not self._trains:
            return
        if threading.get_ident() in self._of_step and torch.is_grad_enabled() and any(
                isinstance(t, torch.Tensor) and t.requires_grad for t in args):
            world.refuse(f"{sites.here()}: two threads compute parts of one step at the same time, which cannot be told apart: train in "
                         "one thread, or in a process for each GPU (DistributedDataParallel)")
        world.note(f"{sites.here()}: what another thread computes on the GPU beside the training is not counted")


def _trains(module) -> bool:
    return torch.is_grad_enabled() and module.training and next(module.parameters(), None) is not None
