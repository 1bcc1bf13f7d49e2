#!/usr/bin/env python3
"""run.py --binary STOKER [--show]: what verbs print on a terminal of 60, 80 and 140 columns.

No line may be wider than the terminal, verdicts are coloured there and nowhere else, NO_COLOR and --color are obeyed, and
-q leaves out what an answer rests on. --show prints the screens, to be looked at.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios

HOST = "--host cores=8,ram=64G".split()
RECORDED = pathlib.Path(__file__).resolve().parents[2] / "src/snapshot/testdata/recorded"
COMMANDS = [
    ["plan", "resnet50", "--gpu", "v100-16gb", "--sample-cost", "9ms", "--samples", "100000", "--price", "2.5", *HOST],
    ["plan", "gpt2", "--gpu", "a100-40gb,h100", "--gpus", "1..8", "--objective", "cost", "--price", "1.3,2.5", "--samples", "100000",
     *HOST],
    ["predict", "resnet50", "--gpu", "rtx-3090", "--batch", "128", "--explain", *HOST],
    ["predict", "resnet50", "--gpu", "t4", "--batch", "4096", *HOST],
    ["predict", "resnet50", "--gpu", "v100-16gb", "--gpus", "1..8", *HOST],
    ["plan", "--step-ms", "50", "--batch", "64", "--sample-cost", "9ms", *HOST],
    ["explain", str(RECORDED / "training.pickle.gz")],
    ["explain", str(RECORDED / "tight.pickle.gz"), "--at", "oom"],
    ["--help"], ["--help-all"], ["help", "plan"], ["predict", "--help-all"], ["models"], ["gpus"],
]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(binary: str, command: list, columns: int, **environment: str) -> str:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen([binary, *command], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL,
                               env={**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})
    os.close(slave)
    said = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # the terminal's other end is closed
            break
        if not part:
            break
        said += part
    process.wait(120)
    os.close(master)
    return said.decode().replace("\r\n", "\n")


def check_widths(binary: str, show: bool) -> None:
    for command in COMMANDS:
        for columns in (60, 80, 140):
            text = on_terminal(binary, command, columns)
            if show:
                print(f"----- {columns}: stoker {' '.join(command)}\n{text}")
            plain = ESCAPES.sub("", text)
            assert plain.strip(), f"{command} says nothing"
            wide = [line for line in plain.splitlines() if len(line) > columns and " " in line.strip()]
            assert not wide, f"{command} at {columns}: {len(wide[0])} columns: {wide[0]!r}"


def check_colour(binary: str) -> None:
    command = COMMANDS[2]
    assert "\x1b[1;32mFITS:\x1b[0m" in on_terminal(binary, command, 100)
    assert "\x1b" not in on_terminal(binary, command, 100, NO_COLOR="1")
    assert "\x1b" not in on_terminal(binary, [*command, "--color", "never"], 100)
    assert "\x1b" not in on_terminal(binary, command, 100, TERM="dumb")

    def piped(*more: str, **environment: str) -> str:
        return subprocess.run([binary, *command, *more], capture_output=True, text=True, check=True,
                              env={**os.environ, **environment}).stdout

    assert "\x1b" not in piped()
    assert "\x1b[1;32mFITS:" in piped("--color=always", NO_COLOR="1")
    assert "\x1b" not in on_terminal(binary, [*command, "--json"], 60), "JSON is for programs"
    assert piped("--json") == on_terminal(binary, [*command, "--json"], 60)


def check_quiet(binary: str) -> None:
    for command in (COMMANDS[0], COMMANDS[1], COMMANDS[2], COMMANDS[4]):
        long = on_terminal(binary, command, 100, NO_COLOR="1")
        assert "\nRests on" in long and "\nAssumed" in long
        for flag in ("-q", "--quiet"):
            short = on_terminal(binary, [*command, flag], 100, NO_COLOR="1")
            assert not re.search(r"\n(Rests on|Assumed|Excluded)", short), f"{command} {flag}"
            assert len(short) < len(long)
    wrong = subprocess.run([binary, "gpus", "--color", "sometimes"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "auto, always or never" in wrong.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.binary)
    check_widths(binary, arguments.show)
    check_colour(binary)
    check_quiet(binary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
