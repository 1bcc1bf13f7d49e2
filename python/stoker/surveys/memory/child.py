"""A process that imports PyTorch, waits for one case, runs it and answers with its row."""

import traceback

from ...measure.answering import Answering


def run(case: dict) -> dict:
    """The row of one case; it has failed where anything is raised."""
    import torch

    from . import probes, training

    if case.get("alloc_conf"):  # nothing has been allocated yet, so this is the same as the environment variable
        torch.cuda.memory._set_allocator_settings(case["alloc_conf"])
    try:
        kinds = {"step": training.measure, "context": probes.context, "snapshot": probes.snapshot}
        return kinds[case["kind"]](case, case["device"])
    except Exception as error:
        traceback.print_exc()
        return {"status": "failed", "note": f"{type(error).__name__}: {error}"[:300]}


def main() -> None:
    answering = Answering()
    from . import probes  # noqa: F401  (imports PyTorch ahead of the case)

    case = answering.hear()
    if case is not None:  # None: a spare that was not needed
        answering.tell(run(case))


if __name__ == "__main__":
    main()
