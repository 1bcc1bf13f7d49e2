"""The DataLoader of a script: the script runs, for the CPU, until it asks one for its first batch."""

from __future__ import annotations

import pathlib
import sys
import tempfile
import types

from .. import imports
from ..errors import CaptureError, UserCodeError
from ..user_code import trimmed
from . import manners
from .facade import processes


class _Found(BaseException):
    """Ends the script: `except Exception` does not stop it."""

    def __init__(self, loader):
        super().__init__()
        self.loader = loader


def loader_of(script: str, arguments: list):
    """The first DataLoader that the script iterates over, as it made it."""
    import torch
    from torch.utils.data import DataLoader

    path = pathlib.Path(script)
    if not path.is_file():
        raise CaptureError(f"there is no file {script}: check the path")
    original, available, argv = DataLoader.__iter__, torch.cuda.is_available, sys.argv
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = script, __builtins__

    def __iter__(self):
        raise _Found(self)

    DataLoader.__iter__, torch.cuda.is_available = __iter__, lambda: False
    sys.argv, sys.modules["__main__"] = [script, *arguments], main
    imports.make_importable(str(path.resolve().parent))
    try:
        with tempfile.TemporaryDirectory(prefix="stoker-probe-") as scratch, manners.for_a_while(scratch) as overlay, \
                processes.for_a_while(script, overlay):
            exec(compile(path.read_bytes(), script, "exec"), main.__dict__)
    except _Found as found:
        return found.loader
    except SystemExit as end:
        code = "" if end.code is None else repr(end.code)
        raise CaptureError(f"{script} ended by sys.exit({code}) before it asked a DataLoader for a batch; its arguments "
                           "follow --") from None
    except Exception as error:
        raise UserCodeError(f"{script} failed before it asked a DataLoader for a batch ({type(error).__name__}); correct what the "
                            "traceback above names", trimmed(error)) from None
    finally:
        DataLoader.__iter__, torch.cuda.is_available, sys.argv = original, available, argv
    raise CaptureError(f"{script} ended without asking a DataLoader for a batch: name a function that returns one, FILE.py:FUNCTION")
