"""A temporary folder that goes away however this process ends, kill -9 included."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile

from ..errors import CaptureError


@contextlib.contextmanager
def folder(prefix: str = "stoker-loader-runs-"):
    """A folder for made files. A small process waits for the end of this one and of all its children, then removes it."""
    try:
        path = tempfile.mkdtemp(prefix=prefix)
    except OSError as error:
        raise CaptureError(f"no folder for temporary files can be made ({error.strerror}): mend TMPDIR") from None
    reading, writing = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        try:
            os.setsid()  # out of the reach of Ctrl-C
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.close(writing)
            for stream in (0, 1, 2):  # nobody should wait for the end of our output because of this process
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            os.read(reading, 1)  # returns when the last holder of the other end is gone
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os._exit(0)
    os.close(reading)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(writing)
