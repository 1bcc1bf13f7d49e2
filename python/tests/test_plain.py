"""Names and messages from files steer no terminal: the cleaner itself, and each of Python's verbs with a hostile name."""

import io
import json

import pytest

from stoker import cli, plain
from stoker.progress import ProgressLine

HOSTILE = "a\x1b[31mb\u202ec\u009bd\x07"
STEERING = "\x1b\u202e\u009b\x07"

CODE = '''
import torch
MESSAGE = "no \\x1b[31m\\u202e value"


class Sums(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(3)


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, "l\\x1b[31m", torch.nn.Linear(4, 4))

    def forward(self, x):
        return getattr(self, "l\\x1b[31m")(x)


class Raises(Odd):
    def forward(self, x):
        raise KeyError(MESSAGE)


def data():
    return Sums()


def no_data():
    raise ValueError(MESSAGE)


def model():
    return Odd(), (torch.zeros(2, 4),)


def raises():
    return Raises(), (torch.zeros(2, 4),)
'''


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / HOSTILE
    made.mkdir()
    (made / "code.py").write_text(CODE)
    (made / "seen.jsonl").write_text(json.dumps({"format": HOSTILE}) + "\n")
    return made


def test_what_steers_is_a_question_mark():
    assert plain.printable("a\x1b[2J\u202e\u009b\nb\tc") == "a?[2J???b?c"
    assert plain.printable_lines("a\x1b\nb\tc\rd\u2028\udcff") == "a?\nb\tc?d??"
    assert plain.printable("plain äöü 中 \u200d 🙂") == "plain äöü 中 \u200d 🙂"
    assert plain.printable(ValueError("x\x00")) == "x?"
    assert plain.without_colours("\x1b[1mbold\x1b[0;31m red\x1b[m, and \x1b[2J") == "bold red, and \x1b[2J"


def test_one_is_one():
    assert [plain.counted(n, "worker") for n in (0, 1, 2048)] == ["0 workers", "1 worker", "2,048 workers"]
    assert [plain.counted(2, what) for what in ("batch", "pass", "entry", "day")] == ["2 batches", "2 passes", "2 entries", "2 days"]


@pytest.mark.parametrize("arguments, code", [
    (["capture", "{}/code.py:model", "-o", "{}/o.step.gz"], 0), (["capture", "{}/code.py:raises", "-o", "{}/o.step.gz"], 3),
    (["capture", "{}/none.py:f", "-o", "{}/o.step.gz"], 3), (["capture", "{}/code.py:model", "--" + HOSTILE], 2),
    (["probe", "{}/code.py:no_data", "--budget", "2s"], 3), (["probe", "{}/code.py:n" + HOSTILE, "--budget", "2s"], 3),
    (["observation", "{}/none.jsonl"], 3), (["observation", "{}/seen.jsonl"], 3), (["observation", "--" + HOSTILE], 2),
    (["loader-runs", "--pipeline", "{}/none.py:f", "--out", "{}/rows.json"], 3), (["vocab", HOSTILE], 3)])
def test_no_verb_hands_on_what_steers(folder, capfd, monkeypatch, arguments, code):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    try:
        ended = cli.main([word.replace("{}", str(folder)) for word in arguments])
    except SystemExit as error:
        ended = error.code
    out, err = capfd.readouterr()
    assert ended == code, err
    assert (out + err).strip()
    assert not set(out + err) & set(STEERING), repr(out + err)


def test_progress_is_cleaned():
    line = ProgressLine(f"probing {HOSTILE}", stream=io.StringIO(), clock=lambda: 0.0)
    line("samples", 0.5)
    assert line.line() == "probing a?[31mb?c?d?: samples, 0 s, about 0 s left"
