"""What the garbage collector knows, looked through while no other thread of the script's runs."""

from __future__ import annotations

import gc
import sys
import threading
import time

_UNSWITCHED_S = 1.0  # longer than a walk takes; a thread that computes on and on keeps the walk waiting so long


def of_kind(wanted) -> list:
    """The objects of whose type `wanted` holds.

    While the collector's list of all is there, it refers to tuples that other threads are about to build, and CPython lengthens a
    tuple only where nobody else refers to it (_PyTuple_Resize): `tuple(generator)` fails in them by SystemError. So they have to wait.
    """
    interval = sys.getswitchinterval()
    others = threading.active_count() > 1
    if others:
        sys.setswitchinterval(_UNSWITCHED_S)
        time.sleep(2 * interval)  # those that wait for their turn by the old interval get it
    try:
        return [thing for thing in gc.get_objects() if wanted(type(thing))]
    finally:
        if others:
            sys.setswitchinterval(interval)
