"""What can go wrong in a capture, each with a message of one sentence that names the cure."""

from __future__ import annotations

EXIT_BUG = 70  # exit code, EX_SOFTWARE of sysexits.h


class CaptureError(Exception):
    """Bad input. The message is one sentence (or two: what is wrong, and the cure) and is all that people see."""


class UserCodeError(CaptureError):
    """The user's own code raised; `traceback_text` holds its frames and none of ours."""

    def __init__(self, message: str, traceback_text: str):
        super().__init__(message)
        self.traceback_text = traceback_text


class InternalError(CaptureError):
    """A fault of this package; `traceback_text` has all frames."""

    def __init__(self, message: str, traceback_text: str):
        super().__init__(message)
        self.traceback_text = traceback_text


class DataDependentError(CaptureError):
    """The model needs a real value of a tensor, and a capture has none."""


class UnsupportedOperatorError(CaptureError):
    """PyTorch has no fake implementation of an operator that the model uses."""


class NotAffineError(CaptureError):
    """The steps at different sizes do not follow polynomials; the message names the first operator that differs."""


class ProbeError(CaptureError):
    """A data set or loader that cannot be probed; the message says why, and the cure."""
