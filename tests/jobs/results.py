"""The results file of tests/jobs: what each case gave, run by run, and where and with what it was measured.

    {"format": "stoker-watch-jobs", "machine": {...}, "cases": {NAME: {"expected": [...], "runs": {"1": {...}},
     "cures": {"1": {...}}, "rival": {...}}}}

run.py and rival.py merge what they measured into it; table.py makes the tables of docs/accuracy/watching.md
and data/measured/watch from it.
"""

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path

FORMAT = "stoker-watch-jobs"


def machine(stoker):
    """Where and with what the jobs ran."""
    import torch

    names = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    version = subprocess.run([stoker, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return {"date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "processor": names[0] if names else "", "cores": os.cpu_count(), "kernel": platform.release().split("-")[0],
            "python": platform.python_version(), "torch": torch.__version__, "stoker": version}


def load(path):
    """The results at `path`, or empty ones."""
    if path and Path(path).exists():
        results = json.loads(Path(path).read_text())
        if results.get("format") != FORMAT:
            raise SystemExit(f"{path} is no results file of tests/jobs")
        return results
    return {"format": FORMAT, "machine": {}, "cases": {}}


def save(path, results):
    """Writes one line a run, so that a difference of two files can be read."""
    lines = ["{", f' "format": {json.dumps(FORMAT)},', f' "machine": {json.dumps(results["machine"])},', ' "cases": {']
    cases = []
    for name, case in results["cases"].items():
        parts = [f'   "expected": {json.dumps(case["expected"])}']
        for kind in ("runs", "cures"):
            if case.get(kind):
                runs = ",\n".join(f"    {json.dumps(number)}: {json.dumps(run)}"
                                  for number, run in sorted(case[kind].items(), key=lambda item: int(item[0])))
                parts.append(f'   "{kind}": {{\n{runs}\n   }}')
        if case.get("rival"):
            parts.append(f'   "rival": {json.dumps(case["rival"])}')
        cases.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n  }")
    text = "\n".join(lines) + "\n" + ",\n".join(cases) + "\n }\n}\n"
    scratch = Path(f"{path}.part")
    scratch.write_text(text)
    scratch.replace(path)


def case_of(results, case):
    """The entry of a case, made where it is missing."""
    entry = results["cases"].setdefault(case.name, {})
    entry["expected"] = list(case.expected)
    return entry


def put(results, case, kind, number, row):
    """Notes a run or a cure."""
    case_of(results, case).setdefault(kind, {})[str(number)] = row
