"""What the verbs' command lines share: how errors and help read, and flags that take NAME=VALUE."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json

from .errors import CaptureError

EXIT_USAGE = 2
HELP_ALL = "--help-all"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, with the nearest flag. `--help` leaves out flags that were added with rare=True,
    `--help-all` shows them."""

    def __init__(self, **settings):
        super().__init__(allow_abbrev=False, **settings)
        self._rare: list = []

    def add_argument(self, *names, rare: bool = False, **settings):
        action = super().add_argument(*names, **settings)
        if rare:
            self._rare.append(action)
            if HELP_ALL not in self._option_string_actions:
                super().add_argument(HELP_ALL, action=_HelpAll, nargs=0, help="show all flags, and stop")
        return action

    def format_help(self) -> str:
        with self._without_rare():
            return super().format_help()

    def format_all(self) -> str:
        """The help with every flag."""
        return super().format_help()

    @contextlib.contextmanager
    def _without_rare(self):
        shown = [action.help for action in self._rare]
        for action in self._rare:
            action.help = argparse.SUPPRESS
        try:
            yield
        finally:
            for action, text in zip(self._rare, shown):
                action.help = text

    def error(self, message: str):
        unknown = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
        if message.startswith("unrecognized arguments") and unknown:
            near = difflib.get_close_matches(unknown[0], self._option_string_actions, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            message = f"unknown flag {unknown[0]}{hint}"
        self.exit(EXIT_USAGE, f"stoker: {message} ({self.prog} --help)\n")


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
