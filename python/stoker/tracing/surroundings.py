"""What goes on around a recorded step: its operators are named by module, and no garbage is collected."""

from __future__ import annotations

import gc

import torch

from .recorder import Recorder


class ModuleNames:
    """Keeps a recorder's module stack, by hooks on every module's forward."""

    def __init__(self, recorder: Recorder, model: torch.nn.Module, beside: list = ()):
        """`beside` are (name, module) that are no part of the model."""
        self._recorder = recorder
        self._index = {}
        for name, module in model.named_modules():
            if name:
                self._index[id(module)] = len(recorder.modules)
                recorder.modules.append(name)
            else:
                self._index[id(module)] = 0
        for outer, other in beside:
            for name, module in other.named_modules():
                if id(module) not in self._index:
                    self._index[id(module)] = len(recorder.modules)
                    recorder.modules.append(f"{outer}.{name}" if name else outer)

    def __enter__(self):
        hooks, recorder = torch.nn.modules.module, self._recorder

        def before(module, args):
            if torch.compiler.is_compiling():
                return  # a graph's operators know their modules
            recorder.enter_module(self._index.get(id(module), recorder.module_stack[-1]))

        def after(module, args, out):
            if torch.compiler.is_compiling():
                return
            recorder.leave_module()

        self._handles = [hooks.register_module_forward_pre_hook(before), hooks.register_module_forward_hook(after)]
        return self

    def __exit__(self, *exception):
        for handle in self._handles:
            handle.remove()


class quiet_collector:
    """No cyclic garbage collection while a step runs: frees would come at times that mean nothing.

    What exists already is frozen, and stays so: it is never garbage, and looking at it costs a second each time.
    """

    def __enter__(self):
        gc.collect()
        gc.freeze()
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *exception):
        if self._was_enabled:
            gc.enable()
