"""A walk through the collector's objects beside threads that compute."""

import gc
import sys
import threading

import pytest

from stoker.shadow.recording import objects


def _naive(wanted) -> list:
    return [thing for thing in gc.get_objects() if wanted(type(thing))]


def _failures(walk) -> int:
    """How often a thread fails to build a tuple while `walk` is made again and again."""
    failed, stop = [], threading.Event()

    def build():
        while not stop.is_set():
            try:
                tuple(number for number in range(200))
            except SystemError as error:
                failed.append(error)

    thread = threading.Thread(target=build)
    thread.start()
    try:
        for _ in range(4):
            walk(lambda kind: False)
    finally:
        stop.set()
        thread.join()
    return len(failed)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="a matter of CPython's tuples")
def test_threads_build_tuples_meanwhile():
    interval = sys.getswitchinterval()
    assert _failures(objects.of_kind) == 0
    assert sys.getswitchinterval() == interval


def test_the_kinds_that_are_wanted_come():
    class Kind:
        pass

    made = [Kind(), Kind()]
    assert {id(thing) for thing in objects.of_kind(lambda kind: kind is Kind)} == {id(thing) for thing in made}
