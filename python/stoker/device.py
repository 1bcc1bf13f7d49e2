"""Makes this process one in which fake tensors dispatch as on CUDA, or says what it does instead."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from dataclasses import dataclass

from . import cuda_surface, shim
from .errors import CaptureError
from .plain import printable_lines

NO_TORCH = ("capturing needs PyTorch 2.4 or newer and this Python has none: `pip install torch` "
            "(a CPU build is enough); everything else works without")
# Operators that CUDA builds have as one kernel and CPU builds would take apart.
CUDA_ONLY_KERNELS = ("silu_backward", "mish_backward", "native_channel_shuffle", "_fused_rms_norm",
                     "_fused_rms_norm_backward")
LOWEST_TORCH = (2, 4)


@dataclass(frozen=True)
class Device:
    """Where fake tensors pretend to live."""

    capture: str  # cuda, fake-cuda or fake-cpu, as in the step file's provenance
    type: str  # PyTorch's device type, cuda or cpu
    note: str = ""  # why it is only fake-cpu, where CUDA was wanted
    wanted: str = "cuda"  # what the step is for: on "cpu" nothing stands in for CUDA's operators


_prepared: Device | None = None
_keep = []  # the loaded library and the torch.library handles live as long as the process


@contextlib.contextmanager
def _stderr_without(text: str):
    """Holds back lines on file descriptor 2 that contain `text` (printed by C++, so sys.stderr does not see them)."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            for line in held.read().decode(errors="replace").splitlines(keepends=True):
                if text not in line:
                    sys.stderr.write(printable_lines(line))


def _import_torch():
    try:
        with _stderr_without("CUDAHooks"):
            import torch
    except ImportError as error:
        if getattr(error, "name", None) == "torch":
            raise CaptureError(NO_TORCH) from None
        raise CaptureError(f"PyTorch is installed but cannot be imported ({error}): reinstall it") from None
    if not hasattr(torch, "__version__"):
        where = getattr(torch, "__file__", None) or next(iter(getattr(torch, "__path__", [])), "an unknown place")
        raise CaptureError(f"the module 'torch' that Python finds is no PyTorch ({where}): rename that file or folder")
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < LOWEST_TORCH:
        raise CaptureError(f"PyTorch {torch.__version__} is too old: captures need 2.4 or newer (pip install -U torch)")
    return torch


def _works(torch, device_type: str) -> bool:
    """One tiny backward under fake tensors: finds out whether the hooks came in time."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode(), torch.autograd.set_multithreading_enabled(False):
            weight = torch.empty(2, 2, device=device_type, requires_grad=True)
            torch.nn.functional.silu(weight @ weight).sum().backward()
            return weight.grad is not None
    except Exception:  # anything at all: PyTorch reports a missing CUDA in many ways
        return False


def works_in_a_child(torch, device_type: str) -> bool:
    """Whether they did, found out in a process of its own: behind a backward on a GPU no fork of this one could run another."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _works(torch, device_type) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _register_missing_kernels(torch) -> None:
    """Names a CUDA kernel where the CPU build has none, so that PyTorch does not take the operator apart."""
    library = torch.library.Library("aten", "IMPL")
    _keep.append(library)

    def never_run(*args, **kwargs):
        raise RuntimeError("a fake kernel was called with a real tensor")

    for name in CUDA_ONLY_KERNELS:
        full = f"aten::{name}"
        try:
            if not torch._C._dispatch_has_kernel_for_dispatch_key(full, "CUDA"):
                library.impl(name, never_run, "CUDA")
        except RuntimeError:
            pass  # this PyTorch has no such operator


def _fake_cuda(torch, library, works) -> Device | str:
    library.stoker_register_guard()
    if not works(torch, "cuda"):
        return "fake CUDA did not come up in this process (was torch imported before the capture began?)"
    _register_missing_kernels(torch)
    # torch.autocast("cuda") in the model's own code would switch itself off without a GPU.
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *args, **kwargs: True
    torch.cuda._lazy_init = lambda: None  # some Python bindings ask for a driver before they dispatch
    cuda_surface.install(torch)
    return Device("fake-cuda", "cuda")


def prepare(say=lambda text: None, wanted: str = "cuda", works=_works) -> Device:
    """Imports PyTorch in the right way and returns where fake tensors live. Idempotent.

    `wanted` is the device that the step is for: "cuda", or "cpu" for what PyTorch does on a CPU. `works` finds out whether the
    hooks came in time: here, or in a child.
    """
    global _prepared
    if wanted == "cpu":  # works in any process: nothing has to be prepared
        _import_torch()
        return Device("fake-cpu", "cpu", wanted="cpu")
    if _prepared is not None:
        return _prepared
    folder = shim.torch_folder()
    if folder is None:
        raise CaptureError(NO_TORCH)
    if shim.gpu_works(folder):
        torch = _import_torch()
        if torch.cuda.is_available():
            _prepared = Device("cuda", "cuda")
            return _prepared
    if os.environ.get("STOKER_FAKE_CPU"):
        reason = "STOKER_FAKE_CPU is set"
    else:
        try:
            library = shim.load(say)
            _keep.append(library)
            result = _fake_cuda(_import_torch(), library, works)
            if isinstance(result, Device):
                _prepared = result
                return result
            reason = result
        except shim.ShimError as error:
            reason = str(error)
    _import_torch()
    say(f"{reason}: capturing on fake CPU tensors instead, which widens the bands")
    _prepared = Device("fake-cpu", "cpu", reason)
    return _prepared
