"""Writes the probe file: whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile

from ..errors import ProbeError


def text_of(doc: dict) -> str:
    """One key a line; the long lists stay on theirs."""
    lines = [f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in doc.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(doc: dict, path: str) -> None:
    """Into a temporary file beside `path`, then renamed: an old file stays whole when the disk is full."""
    folder = os.path.dirname(os.path.abspath(path))
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".stoker-", dir=folder)
        with os.fdopen(descriptor, "w") as file:
            file.write(text_of(doc))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise ProbeError(f"{path} cannot be written ({error.strerror}): free some space or name another place with "
                         "-o") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
