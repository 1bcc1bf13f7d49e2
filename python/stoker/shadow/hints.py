"""The way out of a script's failure: what to give, to set or to install, behind the error's own words."""

from __future__ import annotations

import linecache
import re
import sys
import traceback

_HINTS = (
    (("FakeTensorDeviceMismatchError", "Expected all tensors to be on the same device"),
     "; move all that meets there to one device (.to(device), and register_buffer for what a module keeps)"),
    (("must have same reduction dim", "mat1 and mat2 shapes cannot be multiplied"),
     "; the layer there takes as many features as its second matrix has rows: print the shape before it, and make it of that size"),
    (("does not require grad and does not have a grad_fn",),
     "; nothing that the loss comes from is trained: look for requires_grad = False, detach(), .data and no_grad() on its way"),
    (("backward through the graph a second time",),
     "; what is carried from one step to the next (a hidden state, a sum of losses) needs .detach() in between"),
    (("FileNotFoundError", "NotADirectoryError", "RuntimeError: Dataset not found", "LocalEntryNotFoundError", "OfflineModeIsEnabled"),
     "; data that it wants must be there, since nothing is downloaded for it: --fake-data 3x224x224 stands in for torchvision's data "
     "sets"),
    (("ConnectionRefusedError", "ConnectionError", "URLError", "HTTPError", "gaierror", "MaxRetryError", "couldn't connect to"),
     "; it is kept from the network: fetch what it wants before, or let it do so with --allow-network (--fake-data 3x224x224 stands in "
     "for torchvision's data sets)"),
    (("ModuleNotFoundError", "ImportError"), "; install it in the Python that runs Stoker ({python})"),
    (("UnpicklingError",), "; where you trust the file, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 lets torch.load read it"),
    (("MemoryError", "_ArrayMemoryError", "enforce fail at alloc_cpu"),
     "; this machine has not as much memory: give it less to load before it trains, or build a large model on the device (with "
     "torch.device(\"cuda\"))"),
)


def of_outcome(error: str) -> str:
    """Told by what the run says of its error: "" where there is none."""
    for words, hint in _HINTS:
        if any(re.search(rf"\b{re.escape(word)}", error) for word in words):
            return hint.format(python=sys.executable)
    return ""


def of_error(error: BaseException, world) -> str:
    """The way out of a failure that only the error itself shows: "" where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    if isinstance(error, KeyError) and last.filename.endswith(("os.py", "<frozen os>")) and error.args:
        return f"; it wants the environment variable {error.args[0]}: set it before stoker is called"
    if isinstance(error, IndexError) and "sys.argv" in linecache.getline(last.filename, last.lineno or 0):
        return "; its own arguments follow --"
    return of_gpus(str(error), world) if isinstance(error, (AssertionError, RuntimeError, ValueError)) else ""


def of_gpus(said: str | None, world) -> str:
    """Where a script that has counted the GPUs ends with words about them, or without any (None): it is taken to end for that."""
    site, gpu = world.counted_gpus, world.request.gpu
    if site is None or gpu is None:
        return ""
    if said is not None and not any(word in said.lower() for word in ("gpu", "device", "nproc", "rank", "world")):
        return ""
    return f"; {site} asks how many GPUs there are, and is told {gpu.count}: --gpus N says another number"
