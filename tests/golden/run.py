#!/usr/bin/env python3
"""Runs the golden cases: each command's output against what its file says. README.md beside this tells the format."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import answers

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
TIME_LIMIT_S = 300
PLACEHOLDERS = {
    "{NUMBER}": r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?",
    "{ANY}": r".*",
}


@dataclasses.dataclass
class Command:
    """One command and its lines in the file's own notation ("| text", "! text", "= 3")."""

    text: str
    expected: list
    prose_after: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Case:
    path: pathlib.Path
    prose: list
    commands: list

    @property
    def name(self) -> str:
        return self.path.stem


def parse(path: pathlib.Path, text: str) -> Case:
    case = Case(path, [], [])
    for line in text.splitlines():
        if line.startswith("$ "):
            case.commands.append(Command(line[2:], []))
        elif re.match(r"([|!]( |> |$)|= )", line):
            if not case.commands or case.commands[-1].prose_after:
                raise SystemExit(f"{path}: \"{line}\" belongs to no command; put it right below one")
            case.commands[-1].expected.append(line)
        elif case.commands:
            case.commands[-1].prose_after.append(line)
        else:
            case.prose.append(line)
    if not case.commands:
        raise SystemExit(f"{path}: has no command; a line that starts with \"$ \" is one")
    return case


def unparse(case: Case) -> str:
    lines = list(case.prose)
    for command in case.commands:
        lines += [f"$ {command.text}", *command.expected, *command.prose_after]
    return "\n".join(lines) + "\n"


def notation(mark: str, output: str) -> list:
    """Output in the file's notation."""
    if not output:
        return []
    whole = output.endswith("\n")
    lines = output.split("\n")[:-1] if whole else output.split("\n")
    written = [f"{mark} {line}" if line else mark for line in lines]
    if not whole:
        written[-1] = f"{mark}> {lines[-1]}"
    return written


def execute(command: str, folder: pathlib.Path, environment: dict) -> list:
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=TIME_LIMIT_S)
    actual = notation("|", done.stdout.decode("utf-8", "backslashreplace"))
    # Progress appears when a probe takes longer than a moment: how busy the machine is belongs to no case.
    errors = re.sub(r"^(stoker: )?probing .*\n", "", done.stderr.decode("utf-8", "backslashreplace"), flags=re.MULTILINE)
    actual += notation("!", errors)
    return actual + ([f"= {done.returncode}"] if done.returncode else [])


def matches(expected: str, actual: str, folder: pathlib.Path) -> bool:
    known = {**PLACEHOLDERS, "{FOLDER}": re.escape(str(folder)), "{REPOSITORY}": re.escape(str(REPOSITORY))}
    parts = re.split("(" + "|".join(map(re.escape, known)) + ")", expected)
    return re.fullmatch("".join(known.get(part, re.escape(part)) for part in parts), actual) is not None


def merged(expected: list, actual: list, folder: pathlib.Path) -> list:
    """The actual lines, but the expected ones where these match (so that placeholders survive an update)."""
    usable = list(expected)
    result = []
    for line in actual:
        found = next((i for i, e in enumerate(usable) if matches(e, line, folder)), None)
        result.append(line if found is None else usable[found])
        if found is not None:
            del usable[: found + 1]
    return result


def same(expected: list, actual: list, folder: pathlib.Path) -> bool:
    return len(expected) == len(actual) and all(matches(e, a, folder) for e, a in zip(expected, actual))


def keeps_to_schemas(case: Case, command: Command, kept: answers.Answers) -> bool:
    """Whether what the command answered for machines is as docs/schema says."""
    wrong = [line for text in kept.take() for line in answers.faults(text)]
    if wrong:
        print(f"{case.name}: $ {command.text}")
        print("\n".join(f"  not by docs/schema: {line}" for line in wrong))
    return not wrong


def run_case(case: Case, environment: dict, kept: answers.Answers | None, update: bool) -> bool:
    """Whether it passed; with `update`, whether it was already right."""
    right = lawful = True
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = pathlib.Path(name).resolve()
        surroundings = {**environment, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache")}
        for command in case.commands:
            actual = execute(command.text, folder, surroundings)
            lawful = (kept is None or keeps_to_schemas(case, command, kept)) and lawful
            if same(command.expected, actual, folder):
                continue
            right = False
            shown = merged(command.expected, actual, folder)
            print(f"{case.name}: $ {command.text}")
            print("\n".join(difflib.unified_diff(command.expected, shown, "expected", "actual", lineterm="")))
            command.expected = shown
    if update and not right:
        case.path.write_text(unparse(case), encoding="utf-8")
    return right and lawful


def environment_for(binary: pathlib.Path) -> dict:
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "STOKER_PYTHON")
            if name in os.environ}
    return {**kept, "PATH": f"{binary.parent}:{kept.get('PATH', '/usr/bin:/bin')}", "LC_ALL": "C", "TZ": "UTC",
            "NO_COLOR": "1", "COLUMNS": "100", "GOLDEN": str(HERE), "STOKER_DATA": str(REPOSITORY / "data")}


def main() -> int:
    options = argparse.ArgumentParser(description="Runs the golden cases (README.md beside this).")
    options.add_argument("--binary", type=pathlib.Path, required=True, help="the stoker to test")
    options.add_argument("--cases", type=pathlib.Path, default=HERE / "cases", help="their folder")
    options.add_argument("--update", action="store_true", help="rewrite what differs")
    options.add_argument("names", nargs="*", metavar="CASE", help="default: all")
    given = options.parse_args()
    binary = given.binary.resolve()
    if not os.access(binary, os.X_OK) or binary.is_dir():
        raise SystemExit(f"{given.binary} cannot be run; build it first")
    paths = sorted(given.cases.glob("*.golden"))
    unknown = set(given.names) - {path.stem for path in paths}
    if unknown:
        raise SystemExit(f"no case is called {', '.join(sorted(unknown))}; {given.cases} holds what there is")
    if given.names:
        paths = [path for path in paths if path.stem in given.names]
    if not paths:
        raise SystemExit(f"{given.cases} holds no case (*.golden)")
    environment = environment_for(binary)
    with tempfile.TemporaryDirectory(prefix="golden-answers-") as folder:
        kept = answers.Answers(binary, pathlib.Path(folder)) if answers.available() else None
        if kept:
            environment["PATH"] = f"{kept.path}:{environment['PATH']}"
        else:
            print("answers of --json are not checked against docs/schema: install python3-jsonschema")
        wrong = [case.name for case in (parse(path, path.read_text(encoding="utf-8")) for path in paths)
                 if not run_case(case, environment, kept, given.update)]
    print(f"{len(paths) - len(wrong)} passed, {len(wrong)} {'updated' if given.update else 'failed'}")
    return 1 if wrong and not given.update else 0


if __name__ == "__main__":
    sys.exit(main())
