"""What is given in place of a Python script: a shell script, of which one line starts the training, or a notebook."""

from __future__ import annotations

import pathlib
import re

SUFFIXES = (".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".bat", ".ipynb")
_LAUNCHERS = r"python[0-9.]*|torchrun|accelerate\s+launch|deepspeed|horovodrun|\$\{?PY\w*\}?|uv\s+run|poetry\s+run"
_PYTHON = re.compile(rf"""(?:^|[\s;&|("'=/])(?:{_LAUNCHERS})["']?\s""")
_SCRIPT = re.compile(r"[^\s;&|()'\"]+\.py(?=[\s;&|)'\"]|$)")
_MODULE = re.compile(r"\s-m\s+(?!pip\b|venv\b|torch\.|accelerate\.|json\.)(?P<name>[\w.]+)")
_OTHER = re.compile(r"(?:^|[\s;&|(])(?:bash|sh|zsh|source|\.|sbatch|srun)\s+[^\s;&|]+\.(?:sh|bash|slurm|sbatch)\b|^\./[^\s;&|]+\.sh\b")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_ASSIGNED = re.compile(r"^(?:\w+=\S*\s+|exec\s+|time\s+|nohup\s+)*")


def refusal(path: str) -> str:
    """The sentence that says what to give instead."""
    if path.endswith(".ipynb"):
        return f"{path} is a notebook: make a script of it (jupyter nbconvert --to script {path}) and give that"
    try:
        text = pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return f"there is no file {path}: check the path"
    lines = _lines(text)
    starting = [row for row in lines if _starts_python(row[1])]
    if starting:
        number, line = next((row for row in starting if "train" in row[1]), starting[-1])
        return f"{path} is not Python; line {number} starts it: {line}: {_cure(line)}"
    for number, line in lines:
        if _OTHER.search(line):
            return f"{path} is not Python; line {number} starts another script: {line}: give the Python script that this one starts"
    return f"{path} is not Python, and no line of it starts Python: give the script that it runs"


def _lines(text: str) -> list:
    """(number, line) without comments; a line that goes on behind a backslash is one."""
    found: list = []
    begun, kept = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", line).strip()
        begun, kept = begun or number, f"{kept} {line}".strip()
        if kept.endswith(("\\", "^")):
            kept = kept[:-1].rstrip()
            continue
        if kept:
            found.append((begun, kept))
        begun, kept = 0, ""
    return [*found, (begun, kept)] if kept else found


def _starts_python(line: str) -> bool:
    python = _PYTHON.search(line + " ")
    if python is not None:
        rest = line[python.start():]
        return bool(_SCRIPT.search(rest) or _MODULE.search(rest))
    first = _ASSIGNED.sub("", line).split(" ")[0]
    return first.endswith(".py")


def _cure(line: str) -> str:
    """"give train.py -- --epochs 3"."""
    script = _SCRIPT.search(line)
    if script is None:
        name = _MODULE.search(line)["name"]
        return f"give {name.replace('.', '/')}.py, and its arguments after --"
    rest = re.split(r"[;&|>]|2>", line[script.end():])[0].strip(" '\"")
    given = f"{script[0]} -- {rest}" if rest else script[0]
    return f"give that script, and its arguments after -- ({given})"
