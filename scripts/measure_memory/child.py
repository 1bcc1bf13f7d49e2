"""A process that imports PyTorch, waits for one case on standard input, runs it and prints its row as JSON."""

import json
import os
import sys
import traceback


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes to standard error
    import torch

    from . import probes, training

    line = sys.stdin.readline()
    if not line:  # a spare that was not needed
        return
    case = json.loads(line)
    if case.get("alloc_conf"):  # nothing has been allocated yet, so this is the same as the environment variable
        torch.cuda.memory._set_allocator_settings(case["alloc_conf"])
    run = {"step": training.measure, "context": probes.context, "snapshot": probes.snapshot}[case["kind"]]
    try:
        row = run(case, case["device"])
    except Exception as error:
        traceback.print_exc()
        row = {"status": "failed", "note": f"{type(error).__name__}: {error}"[:300]}
    out.write(json.dumps(row) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
