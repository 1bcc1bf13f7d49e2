"""What the verbs' command lines share: how errors and help read, and flags that take NAME=VALUE."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import textwrap

from .errors import CaptureError
from .plain import printable

EXIT_USAGE = 2
HELP_ALL = "--help-all"
LINES, WORDS_AT = 15, 28  # of --help


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, with the nearest flag. `--help` leaves out flags that were added with rare=True,
    `--help-all` shows them."""

    def __init__(self, **settings):
        super().__init__(allow_abbrev=False, **settings)
        self._rare: list = []
        super().add_argument(HELP_ALL, action=_HelpAll, nargs=0, help="show all flags, and stop")

    def add_argument(self, *names, rare: bool = False, **settings):
        action = super().add_argument(*names, **settings)
        if rare:
            self._rare.append(action)
        return action

    def format_help(self) -> str:
        """What matters first: a line a flag, fifteen in all."""
        placed = [action for action in self._actions if not action.option_strings]
        flags = [action for action in self._actions if action.option_strings and action.dest not in ("help", "help_all")]
        first = [action for action in flags if action not in self._rare]
        lines = [*self._cut(self.description or ""), f"usage: {self.prog} {' '.join(self._word(a) for a in placed)} [FLAGS]", ""]
        lines += [self._line(self._word(action), action) for action in placed]
        end = self._cut(self.epilog or "")
        first = first[:max(1, LINES - len(lines) - len(end) - 1)]
        lines += [self._line(self._flag(action), action) for action in first]
        left = len(flags) - len(first)
        lines.append(f"{left} more flags: {self.prog} {HELP_ALL}" if left else f"{self.prog} {HELP_ALL} shows this in full")
        return "\n".join(lines + end) + "\n"

    def format_all(self) -> str:
        """The help with every flag."""
        return super().format_help()

    @staticmethod
    def _word(action) -> str:
        word = action.metavar or action.dest.upper()
        return f"{word} ..." if action.nargs in ("+", "*") else word

    @staticmethod
    def _flag(action) -> str:
        value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
        return ", ".join(action.option_strings) + value

    def _line(self, left: str, action) -> str:
        line = f"  {left}".ljust(WORDS_AT - 1) + " "
        words = self._get_formatter()._expand_help(action) if action.help else ""
        room = max(10, self._columns() - len(line))
        return (line + (words if len(words) <= room else words[:room - 3].rsplit(" ", 1)[0] + " ...")).rstrip()

    def _cut(self, text: str) -> list:
        """At most two lines of the message."""
        return textwrap.wrap(text, self._columns(), max_lines=2, placeholder=" ...")

    @staticmethod
    def _columns() -> int:
        return max(40, min(100, shutil.get_terminal_size((100, 24)).columns))

    def error(self, message: str):
        unknown = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
        if message.startswith("unrecognized arguments") and unknown:
            near = difflib.get_close_matches(unknown[0], self._option_string_actions, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            message = f"unknown flag {unknown[0]}{hint}"
        self.exit(EXIT_USAGE, f"stoker: {printable(message)} ({self.prog} --help)\n")


class _HelpAll(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        print(parser.format_all(), end="")
        parser.exit()


def _value(text: str):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def pairs(items: list, flag: str) -> dict:
    """{"NAME": value} of the texts "NAME=VALUE" that `flag` was given; values are JSON where they can be read as such."""
    found = {}
    for item in items:
        name, separator, value = item.partition("=")
        if not separator or not name:
            raise CaptureError(f"{flag} {item}: write {flag} NAME=VALUE")
        found[name] = _value(value)
    return found
