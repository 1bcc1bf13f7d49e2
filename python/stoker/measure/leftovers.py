"""A warden that removes processes and files when a measurement is over, however it ends, kill -9 included."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import warnings

from ..errors import ProbeError
from .processes import kill_group, remove_segments


class Warden:
    """A small process that kills the groups of children and removes their folder when this process is gone, or done.

    `folder` is for made files, and for the sockets of the children's multiprocessing. tell("+", pid) puts a group into its
    care, tell("-", pid) takes it out.
    """

    def __init__(self, prefix: str = "stoker-probe-"):
        try:
            self.folder = tempfile.mkdtemp(prefix=prefix)
        except OSError as error:
            raise ProbeError(f"no temporary folder can be made ({error.strerror or error}): free some space, or name a "
                             "folder with room in TMPDIR") from None
        reader, self._writer = os.pipe()
        try:
            with quiet_fork():
                self._pid = os.fork()
        except OSError as error:
            os.rmdir(self.folder)
            raise no_process(error) from None
        if self._pid == 0:
            _guard(reader, self._writer, self.folder)
        os.close(reader)

    def tell(self, sign: str, pid: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self._writer, f"{sign}{pid}\n".encode())

    def forget_in_child(self) -> None:
        """In a child: its copy of the pipe must not keep the warden waiting."""
        with contextlib.suppress(OSError):
            os.close(self._writer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._writer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def __enter__(self) -> Warden:
        return self

    def __exit__(self, *_) -> None:
        self.close()


@contextlib.contextmanager
def quiet_fork():
    """Without Python 3.12's warning about threads beside fork; a DataLoader forks too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def no_process(error: OSError) -> ProbeError:
    return ProbeError(f"no process could be started ({error.strerror}): raise the limit of processes or of memory")


def _guard(reader: int, writer: int, folder: str) -> None:
    """The warden's life: reads "+PID" and "-PID" until the other end is closed."""
    try:
        os.setsid()  # out of the reach of Ctrl-C
        os.close(writer)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for descriptor in range(3):  # nobody should wait for the end of our output because of this process
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
        text, alive = b"", set()
        while True:
            part = os.read(reader, 4096)
            if not part:
                break
            text += part
            *lines, text = text.split(b"\n")
            for line in lines:
                pid = int(line[1:])
                alive.add(pid) if line[:1] == b"+" else alive.discard(pid)
        for pid in alive:
            kill_group(pid)
            remove_segments(pid)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)
