"""Runs the user's own code; what it raises is shown with its frames and without ours."""

from __future__ import annotations

import contextlib
import os
import traceback

from . import places, whose
from .errors import CaptureError, InternalError, UserCodeError

# What autograd says of the user's graph, from within backward().
_AUTOGRADS = ("has been modified by an inplace operation", "Trying to backward through the graph a second time")
# What PyTorch says when Python code asks a fake tensor for its values.
_NEEDS_VALUES = (".numpy() is not supported for tensor subclasses", "Cannot access data pointer of Tensor",
                 "FakeTensor.tolist", "Cannot call numpy() on tensor")


def trimmed(error: BaseException) -> str:
    """The traceback of `error`: the user's frames, and the last frame if that is inside a library."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not whose.is_ours(f.filename)]
    wanted = [f for f in frames if not whose.is_library(f.filename)]
    if frames and (not wanted or frames[-1] is not wanted[-1]):
        wanted.append(frames[-1])
    text = "".join(traceback.format_list(wanted))
    message = "".join(traceback.format_exception_only(type(error), error))
    return f"Traceback (your frames):\n{text}{message}" if wanted else message


def _at(error: BaseException) -> str:
    """" at net.py:12": the innermost line of the user's that the error came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if whose.is_users(f.filename)]
    return f" at {places.shown(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _higher_order(error: BaseException) -> str:
    name = str(error).partition("HigherOrderOperator ")[2].partition(" ")[0] or "an operator of torch.compile"
    cure = ("use torch.nn.functional.scaled_dot_product_attention in its place, which asks for what a compiled flex_attention does"
            if name.startswith("flex_attention") else "write it with plain operators for the capture")
    return f"the model calls {name}{_at(error)}, which a capture cannot follow: {cure}"


# Functions of ours that hand a call of the model's on to PyTorch as it is: what it raises there is an answer to the model's code.
_HAND_ON = {"_call", "__torch_function__", "_attention", "run", "_train", "_infer", "_forward", "_call_model", "loss", "<lambda>"}
# The lines of such functions that do nothing else.
_HANDS_ON = ("return func(*args, **kwargs)", "return self._original(*args, **kwargs)")
# Modules of ours that run files, data sets and loaders of the user's through Python's and PyTorch's own functions.
_HAND_ON_FILES = tuple(os.path.join(folder, name) for folder in whose.OURS for name in ("pipeline", "loader_runs", "specs.py"))


def is_ours(error: BaseException) -> bool:
    """Whether a frame of this package raised, and no frame of the user's or call of the model's after it."""
    if isinstance(error, SyntaxError) and error.filename and not whose.is_ours(error.filename):
        return False  # Python reads the file of the user's for us: no frame of it is there yet
    frames = traceback.extract_tb(error.__traceback__)
    ours = [i for i, f in enumerate(frames) if whose.is_ours(f.filename)]
    if not ours:
        return False
    last = ours[-1]
    if any(not whose.is_library(f.filename) for f in frames[last + 1:]):
        return False
    if last == len(frames) - 1:  # raised by Python in our own line, unless that is a call into PyTorch
        if (frames[last].line or "").startswith(_HANDS_ON):
            return False  # an index out of range, say
        return frames[last].name not in _HAND_ON or isinstance(error, (KeyError, AttributeError, IndexError, NameError))
    return frames[last].name not in _HAND_ON and not frames[last].filename.startswith(_HAND_ON_FILES)


@contextlib.contextmanager
def user_code(what: str):
    """Turns an exception of the user's code into a UserCodeError; ours pass through."""
    try:
        yield
    except CaptureError:
        raise
    except SystemExit as end:
        if is_ours(end):  # a signal that ends the process
            raise
        raise UserCodeError(f"{what} (it ends the program: sys.exit({'' if end.code is None else repr(end.code)})); correct the code "
                            "named in the traceback above", trimmed(end)) from None
    except Exception as error:
        if any(text in str(error) for text in _NEEDS_VALUES):
            raise UserCodeError(f"the model needs the values of a tensor{_at(error)}, and a capture has none: keep the "
                                "computation in torch, and on the device", trimmed(error)) from None
        if isinstance(error, NotImplementedError) and "HigherOrderOperator" in str(error):
            raise UserCodeError(_higher_order(error), trimmed(error)) from None
        if "shape_env must not be None" in str(error):
            raise UserCodeError(f"the model makes a nested tensor{_at(error)}, whose sizes depend on the data: pad to one length and use a "
                                "mask in place of nested tensors", trimmed(error)) from None
        cause = _capture_error_behind(error)
        if cause is not None:
            raise cause from None
        if any(text in str(error) for text in _AUTOGRADS):
            raise UserCodeError(f"{what} ({str(error).strip().splitlines()[0]}); eager PyTorch refuses this too: correct the forward",
                                trimmed(error)) from None
        first = (str(error).strip().splitlines() or [""])[0]
        detail = f"{type(error).__name__}: {first}" if first else type(error).__name__
        if is_ours(error):
            full = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            raise InternalError(f"{what.partition(' raised ')[0]} cannot be captured ({detail}): this is a fault of stoker's and not "
                                "of your code; please report it with the lines above", full) from None
        raise UserCodeError(f"{what} ({detail}); correct the code named in the traceback above",
                            trimmed(error)) from None


def _capture_error_behind(error: BaseException | None):
    """Libraries that catch and raise anew: a CaptureError at the root is what people should read."""
    seen: set = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, CaptureError):
            return error
        error = error.__cause__ or error.__context__
    return None
