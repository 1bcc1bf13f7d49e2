"""Keeps a child process from writing outside of one folder, and from the network, by Linux's Landlock where the kernel has it.

https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_VERSION, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
# Write, remove and make files and folders of all kinds; from version 2 on move them, from 3 on shorten them.
_WRITES = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_CONNECT = 1 << 1  # of TCP, from version 4 on


class Limits:
    """What children may do; for preexec_fn."""

    def __init__(self, folder: str, network: bool):
        self._folder, self._network = folder, network
        self._rules: int | None = None  # a file descriptor; -1 where there is no Landlock

    @property
    def exist(self) -> bool:
        """Whether the kernel keeps them."""
        return self._descriptor() >= 0

    def before(self, other):
        """`other` (or None) and then the limits, as a function to be called between fork and exec."""
        rules = self._descriptor()
        if rules < 0:
            return other

        library = ctypes.CDLL(None)  # not after the fork: another thread may have held the loader's lock
        control, call = library.prctl, library.syscall

        def limited():
            if other is not None:
                other()
            control(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
            call(_RESTRICT, rules, 0)

        return limited

    def _descriptor(self) -> int:
        if self._rules is None:
            try:
                self._rules = self._made()
            except (OSError, AttributeError):
                self._rules = -1
        return self._rules

    def _made(self) -> int:
        if not sys.platform.startswith("linux"):
            return -1  # elsewhere these numbers are other system calls
        call = ctypes.CDLL(None).syscall
        version = call(_CREATE, None, 0, _VERSION)
        if version < 1:
            return -1
        handled = _WRITES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
        network = [] if version < 4 else [0 if self._network else _CONNECT]
        attribute = struct.pack(f"={1 + len(network)}Q", handled, *network)
        rules = call(_CREATE, attribute, len(attribute), 0)
        if rules < 0:
            return -1
        for folder in (self._folder, "/dev", "/proc"):
            descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            try:
                call(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", handled, descriptor), 0)
            finally:
                os.close(descriptor)
        return rules
