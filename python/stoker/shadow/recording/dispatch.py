"""Decides for each operator that the script runs: real on the CPU, fake on the GPU, or a crossing between them."""

from __future__ import annotations

import torch
from torch._subclasses import fake_tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ...errors import CaptureError, UnsupportedOperatorError
from ...tracing import operators
from .. import sites
from . import lookalike, shapes, shares, threads, values

FakeTensor = fake_tensor.FakeTensor
UnsupportedOperatorException = fake_tensor.UnsupportedOperatorException
aten = torch.ops.aten
_GPU = torch.device("cuda", 0)
_UNIMPORTANT = ("generator", "pin_memory")
# Operators whose kernels want operands of one type, which their fake implementations do not ask for.
_OF_ONE_TYPE = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default, aten.convolution.default}


def _of_inference(args) -> bool:
    """Within inference mode, and behind it with tensors that were made there."""
    return torch.is_inference_mode_enabled() or any(isinstance(a, torch.Tensor) and a.is_inference() for a in args)


class Shadow(TorchDispatchMode):
    """Stands around the whole script, in every thread that runs its code."""

    def __init__(self, world):
        super().__init__()
        self._world = world

    @classmethod
    def is_infra_mode(cls) -> bool:
        """torch.compile compiles nothing under the modes of others; this one stands in for the device."""
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self._world.on_gpu:
            return self._on_cpu(func, types, args, kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": None}  # the host's memory is not locked for a device that is not there
        device = kwargs.get("device")
        if FakeTensor not in types and (device is None or device.type != "cuda"):
            return func(*args, **kwargs)
        self._world.used_gpu = True
        try:
            with threads.one_at_a_time():
                return self._fake(func, types, args, kwargs)
        except CaptureError as error:
            self._world.refuse(f"{sites.here()}: {error}")

    # -- for a CPU -------------------------------------------------------------------------------------------------

    def _on_cpu(self, func, types, args, kwargs):
        recorder = self._world.watcher.recorder
        if recorder is None or func.namespace == "prim":
            return func(*args, **kwargs)
        if func is aten._local_scalar_dense.default:
            recorder.item_calls += 0  # a read costs nothing on a CPU
            return func(*args, **kwargs)
        return recorder.__torch_dispatch__(func, types, args, kwargs)

    # -- for a GPU -------------------------------------------------------------------------------------------------

    def _fake(self, func, types, args, kwargs):
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if operators.is_composite(func, "cuda") and _of_inference(args):
            with self:  # inference mode leaves these to the backend, `.cpu()` among them
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        if func is aten._local_scalar_dense.default:
            return self._item(args[0])
        if func is aten._to_copy.default:
            crossed = self._crossing(func, args, kwargs)
            if crossed is not None:
                return crossed
        if func is aten.copy_.default and not isinstance(args[0], FakeTensor):
            self._read("copy_", args[1], "nothing")
            return args[0]
        if func in (aten.equal.default, aten.allclose.default):
            return self._equal(func, args)
        bounded = shapes.BOUNDED.get(func) or shapes.BY_NAME.get(func.name())
        if bounded is not None:
            args, out = bounded(self, args, kwargs)
            if out is not None:
                return out
        out = self.run(func, types, args, self._plain(kwargs))
        if self._world.catches_out_of_memory:
            self._run_out_of_memory(out)
        values.follow(func, args, kwargs, out, followed=self._world.watcher.recorder is not None)
        shares.follow(func, args, out)
        if func is aten._amp_foreach_non_finite_check_and_unscale_.default:
            values.remember(args[1], 0.0)
        return out

    def _run_out_of_memory(self, out) -> None:
        """A script that looks for a batch until memory runs out would look for ever: one tensor that no GPU of the kind holds ends it."""
        memory = self._world.request.gpu.memory
        if not isinstance(out, torch.Tensor) or out.numel() * out.element_size() <= memory:
            return
        self._world.note(f"{sites.here()}: the script catches the end of memory: here only a tensor larger than the GPU causes it, so that "
                         "a batch which it looks for in this way is none; the forecast says which fits")
        raise torch.cuda.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {out.numel() * out.element_size() / 2**30:.2f} GiB. "
                                          f"GPU 0 has a total capacity of {memory / 2**30:.2f} GiB")

    def _ordinal(self, device) -> None:
        """A GPU of another number than the first: there has to be one, and the forecast counts all on one."""
        count = self._world.request.gpu.count
        if device.index >= count:
            self._world.refuse(f"{sites.here()}: uses cuda:{device.index}, and there {'are' if count > 1 else 'is'} {count} of them: give "
                               f"--gpus {device.index + 1}")
        self._world.note(f"{sites.here()}: a model that is spread over GPUs is not modelled: all of it is counted on one")

    def _plain(self, kwargs: dict) -> dict:
        """Without what only a real device knows: its index, its generators, page-locked memory."""
        if not kwargs:
            return kwargs
        kept = {k: None if k in _UNIMPORTANT else v for k, v in kwargs.items()}  # overloads are told apart by them
        if getattr(kept.get("device"), "type", None) == "cuda":
            if kept["device"].index:
                self._ordinal(kept["device"])
            kept["device"] = _GPU
        return kept

    def run(self, func, types, args, kwargs):
        """One operator on fake tensors, recorded where a step is."""
        if func in _OF_ONE_TYPE and len(kinds := {a.dtype for a in args if isinstance(a, torch.Tensor)}) > 1:
            names = " and ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
            raise RuntimeError(f"expected operands of {func._opname} to have the same dtype, but got {names}")
        try:
            return self._run(func, types, args, kwargs)
        except (UnsupportedOperatorError, UnsupportedOperatorException) as error:
            out = lookalike.of(func, args, kwargs, self._world.fake_mode)
            if out is NotImplemented:
                raise error if isinstance(error, CaptureError) else CaptureError(str(error)) from None
            self._world.note(f"{sites.here()}: the sizes of what {func.name()} gives are those of its kernel for the CPU")
            return self._world.watcher.made(func, args, kwargs, out)

    def _run(self, func, types, args, kwargs):
        watcher = self._world.watcher
        recorder = watcher.recorder
        if recorder is None and not watcher.turns.here():
            watcher.turns.beside(args)
        with self._world.fake_mode:
            if recorder is not None:
                recorder.values = values.table
                return recorder.__torch_dispatch__(func, types, args, kwargs)
            handler = operators.HANDLERS.get(func)
            out = handler(*args) if handler is not None else func(*args, **kwargs)
        if watcher.stepping:
            watcher.products.saw(func, args, out)
        return out

    def note_bounded(self, func, tensor) -> None:
        """Says that the size of a result was taken to be the largest possible."""
        where = sites.here()
        self._world.note(f"{where}: the size of what {func._opname} gives depends on values: the largest possible was taken")

    def note_spread(self, func) -> None:
        """Says that the size of a result follows from choices or from chance."""
        self._world.note(f"{sites.here()}: the size of what {func._opname} gives depends on choices or chance: {shares.EXPECTED}; where "
                         "choices crowd, as before a router has learnt, memory and time grow")

    def _read(self, name: str, tensor, answer) -> None:
        dtype = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
        self._world.read(name, dtype, answer, sites.here())

    def _equal(self, func, args) -> bool:
        known = [values.real(t) for t in args[:2]]
        if all(value is not None for value in known):
            return values.table.on_host(lambda: bool(func(*known)))
        self._read(func._opname, args[0], True)
        return True

    def _item(self, tensor):
        answer = values.scalar(tensor)
        if values.real(tensor) is None:
            self._read("item", tensor, answer)
        recorder = self._world.watcher.recorder
        if recorder is not None and tensor.device.type == "cuda":
            self._world.watcher.synchronises("item")
        return answer

    def _crossing(self, func, args, kwargs):
        """What a copy between host and device gives; None where it stays on one side."""
        tensor, device = args[0], kwargs.get("device")
        fake = isinstance(tensor, FakeTensor) and tensor.device.type == "cuda"
        if device is None:
            return None
        dtype = kwargs.get("dtype") or tensor.dtype
        if fake and device.type == "cpu":
            if values.real(tensor) is None:
                self._read("cpu", tensor, "ones" if dtype.is_floating_point else "zeros")
            if not kwargs.get("non_blocking"):
                self._world.watcher.synchronises("copy")
            return values.on_host(tensor.shape, dtype, tensor)
        if device.type == "cuda" and device.index:
            self._ordinal(device)
        if not fake and device.type == "cuda" and not isinstance(tensor, FakeTensor):
            return self._to_gpu(func, args, kwargs, dtype)
        return None

    def _to_gpu(self, func, args, kwargs, dtype):
        tensor = args[0]
        wanted = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") is not None else {}
        like = torch.empty_like(tensor, device="meta", dtype=dtype, **wanted)
        with self._world.fake_mode:
            out = torch.empty_strided(tuple(like.shape), like.stride(), dtype=dtype, device=_GPU)
        if tensor.device.type == "cpu":
            values.keep(out, tensor)
        self._world.watcher.copied_in(func, args, kwargs, out)
        return out
