"""One run of the script, in a forked process of its own."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pathlib
import sys
import threading
import types

import torch
from torch.overrides import TorchFunctionMode

from .. import device as devices
from .. import standins
from ..plain import without_colours
from ..tracing import packed, random_state, rnn
from ..tracing.functions import AbstractFunctions
from ..user_code import trimmed
from . import endings, hints, main_module, manners, sites, standard_input
from .facade import (
    compilation,
    cuda,
    distributed,
    fake_data,
    files,
    graphs,
    libraries,
    loaders,
    modules,
    notebook,
    processes,
    sequences,
    training,
)
from .recording import dispatch, shapes, threads
from .recording.watcher import Watcher
from .settings import batches
from .world import WHERE, WHERE_SIGNAL, Request, World

_USAGE = "; its own arguments follow --"  # argparse, click and others end by 2 where arguments are wrong


class _Attention(AbstractFunctions):
    """Routes attention and recurrent layers of fake tensors alone to operators that a capture can hold."""

    class _Counter:
        """Where the stand-ins count: the recorder of the step that is recorded, if any."""

        def __init__(self, world):
            object.__setattr__(self, "_world", world)

        @property
        def math_attention(self):
            recorder = self._world.watcher.recorder
            return recorder.math_attention if recorder is not None else 0

        @math_attention.setter
        def math_attention(self, value):
            recorder = self._world.watcher.recorder
            if recorder is not None:
                recorder.math_attention = value

    def __init__(self, world):
        super().__init__(self._Counter(world))

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in cuda.FROM_DATA:
            made = cuda.from_data(func, args, kwargs)
            if made is not None:
                return made
        if func in cuda.INDEXED:
            return super().__torch_function__(func, types, cuda.with_index_tensors(args), kwargs)
        if func in (torch.ctc_loss, torch.nn.functional.ctc_loss) and len(args) > 3 and isinstance(args[0], dispatch.FakeTensor):
            args = (*args[:2], *shapes.ctc_lengths(*args[:4]), *args[4:])
        if func in rnn.FUNCTIONS:
            made = sequences.run(func, args)
            if made is not None:
                return made
            if packed.is_packed(args):
                return func(*args, **kwargs)
        if func in (packed.PACK, packed.PAD):  # the lengths were made equal as they were packed
            return func(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def _attention(self, query, *args, **kwargs):
        if not isinstance(query, dispatch.FakeTensor):
            with torch._C.DisableTorchFunction():
                return self._original(query, *args, **kwargs)
        return super()._attention(query, *args, **kwargs)


class _AttentionOfThread(_Attention):
    """The one of another thread than the main one, which has replaced the function's name for all: another replacement would be seen
    by whatever the main one is tracing, as where a progress bar starts a thread within torch.compile."""

    def __enter__(self):
        self._original = torch._C._nn.scaled_dot_product_attention
        return TorchFunctionMode.__enter__(self)

    def __exit__(self, *exception):
        return TorchFunctionMode.__exit__(self, *exception)


def run(request: Request, result_file: str, scratch: str, log: str, progress) -> None:
    """Runs the script to its end or to the end of its capture. Never returns: the process ends."""
    manners.die_with_parent()
    os.setsid()
    world = World(request, result_file)
    world.scratch = scratch
    _redirect(log, world)
    _tell_where_it_is(os.path.join(scratch, WHERE))
    _prepare_device(world)
    world.progress = progress
    world.watcher = Watcher(world)
    random_state.seed()
    main = _prepare_main(request, batches.arguments(request))
    batches.install(world)
    if world.on_gpu:
        world.fake_mode = threads.FakeMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
    cuda.install(world)
    graphs.install(world)
    modules.install(world)
    sequences.install(world)
    training.install(world)
    compilation.install(world)
    loaders.install(world)
    files.install(world)
    distributed.install(world)
    fake_data.install(world)
    notebook.install(world, main, pathlib.Path(request.script).read_bytes())
    overlay = manners.install(scratch, request.network)
    libraries.install(world, overlay)
    processes.install(world, overlay)
    endings.install(world, lambda: _execute(world, _prepare_main(request, sys.argv[1:])))
    _in_every_thread(world)
    attention = _Attention(world) if world.on_gpu else contextlib.nullcontext()
    with torch.autograd.set_multithreading_enabled(False), dispatch.Shadow(world), attention:
        _execute(world, main)


def _prepare_device(world) -> None:
    """Where fake tensors are to live. Without CUDA's dispatch the script is run for the CPU, which is said."""
    device = devices.prepare(wanted="cuda" if world.on_gpu else "cpu", works=devices.works_in_a_child)
    world.outcome.device = device
    if world.on_gpu and device.type != "cuda":
        world.request.gpu = None
        world.note(f"captured on the CPU: {device.note}")


def _redirect(log: str, world) -> None:
    """What the script prints goes into a file; it reads nothing."""
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(target, 1)
    os.dup2(target, 2)
    sys.stdin = standard_input.install(world)
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)


def _tell_where_it_is(path: str) -> None:
    """Writes down which lines run when it is asked by a signal, and when a fault ends the process."""
    out = open(path, "w")  # noqa: SIM115 (for as long as the process lives)
    faulthandler.enable(out)
    faulthandler.register(WHERE_SIGNAL, out)


def _prepare_main(request: Request, arguments: list) -> types.ModuleType:
    main = main_module.prepare(request.script, arguments)
    standins.install()
    return main


def _in_every_thread(world) -> None:
    """Modes belong to a thread: those that the script starts get them, too."""
    original = threading.Thread._bootstrap_inner

    def _bootstrap_inner(self):
        with torch.autograd.set_multithreading_enabled(False), dispatch.Shadow(world):
            if world.on_gpu:
                with _AttentionOfThread(world):
                    original(self)
            else:
                original(self)

    threading.Thread._bootstrap_inner = _bootstrap_inner


def _execute(world, main) -> None:
    """Executes the script; says how it ended. Never returns."""
    outcome = world.outcome
    code = batches.code(world)
    names = batches.names(world, main)
    try:
        main_module.execute(code, main, names)
        _wait_for_threads()
    except SystemExit as end:
        if not world.watcher.script_ended():
            outcome.kind = "no_step"
            outcome.error = f"it ended by sys.exit({'' if end.code is None else end.code!r}) before it trained"
            said = end.code if isinstance(end.code, str) else None
            outcome.hint = _USAGE if end.code == 2 else hints.of_gpus(said, world)
    except BaseException as error:
        outcome.kind = "failed"
        outcome.wants_ranks = isinstance(error, KeyError) and error.args[:1] in (("RANK",), ("LOCAL_RANK",), ("WORLD_SIZE",),
                                                                               ("MASTER_ADDR",), ("LOCAL_WORLD_SIZE",))
        outcome.compiler_failed = bool(outcome.compiled_at) and compilation.raised_by_compiler(error)
        outcome.traceback = without_colours(trimmed(error))
        outcome.hint = hints.of_error(error, world)
        outcome.failed_at = sites.of_error(error)
        first = (without_colours(error).strip().splitlines() or [""])[0].strip()
        outcome.error = f"{type(error).__name__}: {first}" if first else type(error).__name__
        if world.watcher.records and world.watcher.records[-1].is_whole():
            world.note(f"after its step the script failed ({outcome.error}): what later steps show is unknown; correct {outcome.failed_at}"
                       + (outcome.hint or hints.of_outcome(outcome.error)))
            outcome.kind, outcome.error, outcome.traceback = "done", "", ""
            world.watcher.finish(world.watcher.records[-1])
    else:
        if not world.watcher.script_ended():
            outcome.kind = "no_step"
            outcome.error = _what_was_seen(world)
    world.end()


def _wait_for_threads() -> None:
    """As Python does before it ends: one of them may train."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _what_was_seen(world) -> str:
    watcher = world.watcher
    if not watcher.calls and world.by_function:
        name, site = world.by_function
        world.outcome.hint = (": update the weights by an optimizer of torch.optim (parameter.grad = gradient; optimizer.step()), or "
                              "name a function that returns the model: FILE.py:FUNCTION")
        return f"{site} takes gradients by {name}, and no optimizer updates the weights by them"
    if not watcher.optimizers:
        return "it ended without an optimizer and without a backward"
    if not watcher.calls:
        return "it ended before its optimizer's step was called"
    return "it ended before a whole step was seen"

