"""The measured processes as the one that starts them sees them: begun, told when to go, waited for, ended."""

from __future__ import annotations

import signal

from ..measure import fresh
from ..measure.leftovers import Warden

Cut = fresh.TimeUp  # the time was over before the process was; what it had is not used


def run(case: dict, deadline: float, begin=lambda: None, warden: Warden | None = None) -> dict:
    """The answer of one child (child.py). `begin` is called when it is ready to be timed, and waits.

    `deadline` is time.monotonic()'s. Whatever happens, no process is left. Raises Cut.
    """
    with fresh.Child("stoker.training_runs.child", warden=warden) as child:
        try:
            child.tell(case)
            while (message := child.hear(deadline)).pop("say") != "end":
                begin()
                child.tell("go")
            return message
        except fresh.Died:
            if child.code() == -signal.SIGKILL:
                return {"status": "oom", "note": "out of memory: the system killed the process, as it does where memory runs out"}
            return {"status": "failed", "note": child.why()}
