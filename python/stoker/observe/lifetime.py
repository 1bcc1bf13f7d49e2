"""What happens to observers at exit and in forked children."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys

_open = set()


def register(observer) -> None:
    _open.add(observer)


def forget(observer) -> None:
    _open.discard(observer)


def in_child_process() -> bool:
    """Started by multiprocessing: a DataLoader's worker that imported the script anew, or a rank."""
    return multiprocessing.parent_process() is not None


def _at_exit() -> None:
    error = getattr(sys, "last_type", None)  # what ended the program, if something did
    for observer in list(_open):
        _open.discard(observer)
        observer._close(at_exit=True, error=error)


def _in_child() -> None:
    for observer in list(_open):
        observer._abandon()
    _open.clear()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
