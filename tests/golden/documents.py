#!/usr/bin/env python3
"""documents.py --binary STOKER [--update]: what README.md and the guides say that a command prints is what it prints.

A fenced block that begins with "$ stoker ..." is run in an empty folder, with -q, since such a block leaves out what an
answer rests on.
"""

from __future__ import annotations

import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md")))
NO_ANSWER = 1  # the exit code of an answer that says no: it does not fit
BLOCK = re.compile(r"^```\n\$ (stoker [^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(binary: str, command: str) -> str:
    words = [word for word in shlex.split(command)[1:] if word != "-q"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STOKER_")}
        done = subprocess.run([binary, *words, "-q"], cwd=folder, capture_output=True, text=True, timeout=120,
                              env={**environment, "XDG_CACHE_HOME": folder, "LC_ALL": "C.UTF-8"})
    if done.returncode not in (0, NO_ANSWER):
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr}")
    return done.stdout.rstrip() + "\n"


def check(document: pathlib.Path, binary: str, update: bool) -> tuple[int, int]:
    """How many blocks a document shows, and how many of them are wrong; these are mended with `update`."""
    name = str(document.relative_to(ROOT))
    text = document.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    wrong = 0
    for command, shown in blocks:
        now = printed(binary, command)
        if now == shown:
            continue
        if update:
            text = text.replace(f"$ {command}\n{shown}```", f"$ {command}\n{now}```")
            continue
        wrong += 1
        print(f"{name} does not show what this prints (--update mends it): {command}")
        print("\n".join(difflib.unified_diff(shown.splitlines(), now.splitlines(), name, "printed", lineterm="")))
    if update:
        document.write_text(text, encoding="utf-8")
    return len(blocks), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--update", action="store_true", help="write what they print into the documents")
    arguments = parser.parse_args()
    found = [check(document, os.path.abspath(arguments.binary), arguments.update) for document in DOCUMENTS]
    if not found[0][0]:
        raise SystemExit("README.md shows no command with what it prints")
    return 1 if any(wrong for _, wrong in found) else 0


if __name__ == "__main__":
    sys.exit(main())
