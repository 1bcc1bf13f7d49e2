"""Programs that the script starts by subprocess or os.system.

nvidia-smi tells of the GPU that was asked for. What writes, fetches or starts another training is not run, and seems to have
done its work. All others run, and can write nowhere but in the scratch folder where the kernel has Landlock (Linux 5.13).
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys

from .. import landlock, sites
from . import nvidia

_WRITING = {"rm", "mv", "cp", "touch", "ln", "rsync", "tar", "unzip", "zip", "gzip", "gunzip", "7z", "tee", "dd", "chmod", "chown",
            "mkdir", "rmdir", "truncate", "install", "patch"}
_FETCHING = {"wget", "curl", "aria2c", "axel", "scp", "ssh", "sftp", "gsutil", "gcloud", "aws", "s3cmd", "azcopy", "rclone", "kaggle",
             "huggingface-cli", "hf", "gdown", "conda", "mamba", "uv", "apt", "apt-get", "npm", "make", "cmake", "sbatch", "srun",
             "kubectl", "docker", "mail", "sendmail", "sudo", "kill", "pkill", "killall"}
_READING_GIT = {"rev-parse", "status", "log", "describe", "diff", "branch", "remote", "show", "config", "ls-files", "symbolic-ref",
                "rev-list", "--version", "version", "tag"}
_PYTHON = re.compile(r"^(python[0-9.]*|torchrun|accelerate|deepspeed|bash|sh|zsh|horovodrun|mpirun)$")
_PIP_READS = {"list", "freeze", "show", "--version"}
_QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\."""
_QUOTES = "'\""
_BETWEEN = re.compile(rf"(?P<quoted>{_QUOTED})|\|\||&&|[;|\n]|(?<!>)&(?!>)", re.DOTALL)
_REDIRECTED = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<sign>(?:\b[0-9]|&)?>>?)\s*(?P<file>'[^']*'|\"[^\"]*\"|[^\s;&|<>()'\"]+)",
                         re.DOTALL)


def install(world, overlay) -> None:
    tool = nvidia.Tool(world, overlay.scratch) if world.on_gpu else None
    limits = landlock.Limits(overlay.scratch, world.request.network)
    original = subprocess.Popen.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        given = bound.arguments
        if tool is not None:
            tool.answer(given)
        site = sites.starter()
        if site is not None:
            _as_allowed(world, overlay, given, site)
            given["preexec_fn"] = limits.before(given.get("preexec_fn"))
            if not limits.exist:
                world.note("programs that the script starts can write wherever they like: this kernel has no Landlock")
        original(*bound.args, **bound.kwargs)

    def system(command):
        code = subprocess.call(command, shell=True)
        return code << 8 if code >= 0 else -code  # a status as of wait()

    subprocess.Popen.__init__ = __init__
    os.system = system
    if tool is not None:
        which = shutil.which
        shutil.which = lambda cmd, *args, **kwargs: which(cmd, *args, **kwargs) or (
            "/usr/bin/nvidia-smi" if cmd == "nvidia-smi" else None)


def _as_allowed(world, overlay, given: dict, site) -> None:
    """Replaces a command that is not to be run by one that does nothing."""
    command, shell = given["args"], bool(given.get("shell"))
    text = command if isinstance(command, str) else os.fsdecode(command) if isinstance(command, (bytes, os.PathLike)) else None
    parts = _parts(text) if text is not None and shell else [[os.fsdecode(w) for w in ([text] if text is not None else command)]]
    refused = next((words for words in parts if _is_refused(words)), None)
    if refused is None:
        if text is not None and shell:
            given["args"] = _REDIRECTED.sub(lambda m: m[0] if m["quoted"] else _redirected(overlay, m["sign"], m["file"]), text)
        return
    for words in parts:
        if words and os.path.basename(words[0]) == "mkdir":
            for folder in (w for w in words[1:] if not w.startswith("-")):
                os.makedirs(folder, exist_ok=True)
    said = " ".join(refused)
    if _PYTHON.match(_program(refused)):
        world.outcome.starts.append((str(site), said))
    world.note(f"{site}: a command is not run: {said[:60]}")
    given.update(args=["true"], shell=False, executable=None)


def _redirected(overlay, sign: str, file: str) -> str:
    return f"{sign} {shlex.quote(os.fspath(overlay.to_write(file.strip(_QUOTES))))}"


def _split(text: str) -> list:
    """The pieces of a line between the shell's signs, where they do not stand in quotes."""
    pieces, begin = [], 0
    for sign in _BETWEEN.finditer(text):
        if not sign["quoted"]:
            pieces.append(text[begin:sign.start()])
            begin = sign.end()
    return [*pieces, text[begin:]]


def _parts(text: str) -> list:
    """The commands of a line for the shell, each as words."""
    found = []
    for part in _split(text):
        try:
            words = shlex.split(part)
        except ValueError:
            words = part.split()
        while words and (re.match(r"^\w+=", words[0]) or words[0] in ("env", "nohup", "time", "exec", "nice")):
            words = words[1:]
        if words:
            found.append(words)
    return found


def _program(words: list) -> str:
    return os.path.basename(words[0]) if words else ""


def _is_refused(words: list) -> bool:
    """Whether the command would write, fetch, or start another script."""
    name, rest = _program(words), words[1:]
    if name == "git":
        verb = next((w for i, w in enumerate(rest) if not w.startswith("-") and rest[i - 1:i] not in (["-C"], ["-c"])), "--version")
        return verb not in _READING_GIT
    if name in ("pip", "pip3"):
        return not (rest and rest[0] in _PIP_READS)
    if words and (_PYTHON.match(name) or words[0] == sys.executable):
        if rest[:2] == ["-m", "pip"]:
            return not (rest[2:] and rest[2] in _PIP_READS)
        return any(w.endswith((".py", ".sh")) or w in ("-m", "launch") for w in rest)
    return name in _WRITING or name in _FETCHING
