"""A process for the tests of fresh children: it does as its argument says."""

import os
import subprocess
import sys
import time

from stoker.measure.answering import Answering

answering = Answering()
print("libraries print")
kind = sys.argv[1]
if kind == "doubles":
    while (number := answering.hear()) is not None:
        answering.tell({"twice": 2 * number})
elif kind == "dies":
    answering.hear()
    print("the last words", file=sys.stderr, flush=True)
    os._exit(7)
elif kind == "hangs":
    helper = subprocess.Popen(["sleep", "600"])
    answering.tell(helper.pid)
    time.sleep(600)
