"""Captures many scripts in one process, which imports PyTorch once: python many_captures.py CASES.json ANSWERS.json

A case has a folder, in which its train.py lies, and flags; an answer the exit code that the command would end with, what it would
say, and the step file's head.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

from places import PYTHON
from stoker.errors import CaptureError
from stoker.shadow import command, runs

KEPT = ("name", "mode", "precision", "script", "optimizer", "parameters", "diagnostics", "dimensions", "types", "provenance", "compiled",
        "training", "storages", "buffers")


def of(scripts: dict, flags: dict, folder: pathlib.Path) -> dict:
    """The answers for scripts by their names, in a child; each lies in a folder of its own, where nothing is left behind."""
    for name, text in scripts.items():
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(text)
    cases = [{"folder": str(folder / name), "flags": list(flags.get(name, ()))} for name in scripts]
    (folder / "cases.json").write_text(json.dumps(cases))
    subprocess.run([sys.executable, __file__, str(folder / "cases.json"), str(folder / "answers.json")], check=True,
                   env=dict(os.environ, PYTHONPATH=f"{PYTHON}:{pathlib.Path(__file__).parent}"), stdin=subprocess.DEVNULL)
    for name in scripts:
        assert [path.name for path in (folder / name).iterdir()] == ["train.py"]
    return dict(zip(scripts, json.loads((folder / "answers.json").read_text())))


def answer(case: dict) -> dict:
    os.chdir(case["folder"])
    options = command.parser().parse_args(["train.py", *case["flags"]])
    try:
        doc = command.here("train.py", case.get("words", []), options, lambda text: None)
    except CaptureError as error:
        return {"code": 3, "said": f"{getattr(error, 'traceback_text', '')}\n{error}"}
    return {"code": 0, "said": "", **{key: doc[key] for key in KEPT if key in doc}, "events": len(doc["events"]),
            "operators": [doc["strings"]["operators"][event[1]] for event in doc["events"] if event[0] == "o"]}


def main() -> None:
    cases = json.load(open(sys.argv[1]))
    runs.warm_up(lambda text: None)
    answers = []
    for case in cases:
        begun = time.monotonic()
        answers.append({**answer(case), "seconds": time.monotonic() - begun})
        print(os.path.basename(case["folder"]), answers[-1]["code"], f"{answers[-1]['seconds']:.1f} s", flush=True)
    json.dump(answers, open(sys.argv[2], "w"))


if __name__ == "__main__":
    main()
