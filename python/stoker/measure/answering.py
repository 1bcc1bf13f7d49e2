"""The side of a process that was started by fresh.Child: it hears and answers in lines of JSON, until nobody asks."""

from __future__ import annotations

import json
import os
import sys

from . import fresh, signals


class Answering:
    """Made first thing in such a process: from then on whatever libraries print goes to standard error."""

    def __init__(self):
        if fresh.parent():
            signals.die_with_parent(fresh.parent())
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def hear(self):
        """The next message; None once the other side has nothing more to ask."""
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def tell(self, message) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def leave(self) -> None:
        """Ends the process without tidying up: a device that has failed may hang there, and process groups of PyTorch abort
        now and then as the interpreter ends."""
        self._out.close()
        sys.stderr.flush()
        os._exit(0)
