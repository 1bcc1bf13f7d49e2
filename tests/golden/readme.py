#!/usr/bin/env python3
"""readme.py --binary STOKER [--update]: what README.md says that a command prints is what it prints.

A block that begins with "$ stoker ..." is run in an empty folder, with -q, since README leaves out what an answer rests on.
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

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```\n\$ (stoker [^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(binary: str, command: str) -> str:
    words = shlex.split(command)[1:]
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STOKER_")}
        done = subprocess.run([binary, *words, "-q"], cwd=folder, capture_output=True, text=True, timeout=120,
                              env={**environment, "XDG_CACHE_HOME": folder, "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr}")
    return done.stdout.rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--update", action="store_true", help="write what they print into README.md")
    arguments = parser.parse_args()
    text = README.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    if not blocks:
        raise SystemExit(f"{README} shows no command with what it prints")
    wrong = 0
    for command, shown in blocks:
        now = printed(os.path.abspath(arguments.binary), command)
        if now == shown:
            continue
        if arguments.update:
            text = text.replace(f"$ {command}\n{shown}```", f"$ {command}\n{now}```")
            continue
        wrong += 1
        print(f"README.md does not show what this prints (--update mends it): {command}")
        print("\n".join(difflib.unified_diff(shown.splitlines(), now.splitlines(), "README.md", "printed", lineterm="")))
    if arguments.update:
        README.write_text(text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
