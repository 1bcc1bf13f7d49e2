"""Programs that the script starts by subprocess, os.system or asyncio.

nvidia-smi tells of the GPU that was asked for. What writes, reaches out or starts another training is not run, and seems to have
done its work. All others run, and can write nowhere but in the scratch folder where the kernel has Landlock (Linux 5.13);
elsewhere only those run that are known to read.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import shlex
import shutil
import subprocess
import types

from .. import landlock, sites
from . import commands, nvidia, started

_QUOTES = "'\""
_REDIRECTED = re.compile(rf"(?P<quoted>{commands.QUOTED})|(?P<sign>(?:\b[0-9]|&)?>>?)\s*(?P<file>'[^']*'|\"[^\"]*\"|[^\s;&|<>()'\"]+)",
                         re.DOTALL)
_WORDS = re.compile(r"'(?P<single>[^']*)'|\"(?P<double>[^\"$`\\]*)\"|(?P<plain>[^\s;&|<>()'\"$`]+)")
_MOST_COPIED = 64 << 20  # bytes of a file that `cp` of the script's brings to the scratch folder


def install(world, overlay) -> None:
    manners = Manners(world, overlay, landlock.Limits(overlay.scratch, world.request.network))
    original = subprocess.Popen.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        given = bound.arguments
        manners.keep(given, sites.starter())
        given["preexec_fn"] = manners.limits.before(given.get("preexec_fn"))
        original(*bound.args, **bound.kwargs)

    def system(command):
        code = subprocess.call(command, shell=True)
        return code << 8 if code >= 0 else -code  # a status as of wait()

    subprocess.Popen.__init__ = __init__
    os.system = system
    started.install(world, manners)
    if world.on_gpu:
        which = shutil.which
        shutil.which = lambda cmd, *args, **kwargs: which(cmd, *args, **kwargs) or (
            "/usr/bin/nvidia-smi" if cmd == "nvidia-smi" else None)


@contextlib.contextmanager
def for_a_while(script: str, overlay):
    """These manners until the end of the `with`, for a script that runs in this process and has no GPU."""
    import pty

    places = [(subprocess.Popen, "__init__"), (pty, "spawn"), *((os, name) for name in (
        "system", "_spawnvef", "posix_spawn", "posix_spawnp") if hasattr(os, name))]
    before = [(owner, name, getattr(owner, name)) for owner, name in places]
    request = types.SimpleNamespace(script=script, network=False)
    install(types.SimpleNamespace(on_gpu=False, request=request, outcome=types.SimpleNamespace(starts=[]), note=lambda text: None), overlay)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


class Manners:
    """What becomes of a command before it is run."""

    def __init__(self, world, overlay, limits):
        self._world, self._overlay, self.limits = world, overlay, limits
        self._tool = nvidia.Tool(world, overlay.scratch) if world.on_gpu else None

    def keep(self, given: dict, site) -> None:
        """Replaces, in Popen's arguments, a command that is not to be run by one that does nothing; `site` is the line that starts it,
        or None where a library does."""
        if self._tool is not None:
            self._tool.answer(given)
        command, shell = given["args"], bool(given.get("shell"))
        text = command if isinstance(command, str) else os.fsdecode(command) if isinstance(command, (bytes, os.PathLike)) else None
        words = [text] if text is not None else [os.fsdecode(word) for word in command]
        parts = commands.parts(text) if text is not None and shell else [words]
        if site is None:
            if any(self.starts_itself(part) for part in parts):
                self._world.note(f"{sites.here()}: a library starts the script again as another process, which is taken to do the same "
                                 "as this one")
                given.update(args=["true"], shell=False, executable=None)
            return
        if not self.limits.exist:
            self._world.note("what is not known to read alone is not run: this kernel has no Landlock, which would keep it from writing")
        refused = next((part for part in parts if is_refused(part, self.limits)), None)
        if refused is None:
            self._lead_elsewhere(given, text if shell else None)
            return
        for part in parts:
            with contextlib.suppress(OSError):
                _as_if(part)
        self.say(refused, site)
        given.update(args=["true"], shell=False, executable=None)

    def starts_itself(self, words: list) -> bool:
        """Whether a command runs the script that is captured."""
        script = os.path.realpath(self._world.request.script)
        return commands.of(words) == commands.TRAINS and any(os.path.realpath(word) == script for word in words if word.endswith(".py"))

    def say(self, words: list, site) -> None:
        said = " ".join(words)
        if commands.of(words) == commands.TRAINS:
            self._world.outcome.starts.append((str(site), said))
        self._world.note(f"{site}: a command is not run: {said[:60]}")

    def _lead_elsewhere(self, given: dict, text: str | None) -> None:
        """Files that the script has written lie in the scratch folder, and the shell writes there."""
        overlay = self._overlay
        if given.get("cwd") is not None:
            given["cwd"] = overlay.to_read(given["cwd"])
        if text is not None:
            text = _REDIRECTED.sub(lambda m: m[0] if m["quoted"] else _redirected(overlay, m["sign"], m["file"]), text)
            given["args"] = _WORDS.sub(lambda m: _as_written(overlay, m), text) if overlay.written else text
        elif not isinstance(given["args"], (str, bytes, os.PathLike)):
            words = list(given["args"])
            given["args"] = [*words[:1], *(self._read(word) for word in words[1:])]

    def _read(self, word):
        return self._overlay.to_read(word) if self._overlay.written and not os.fsdecode(word).startswith("-") else word


def is_refused(words: list, limits) -> bool:
    """Whether the command would write, reach out, or start another script, or may do so and nothing would keep it from it."""
    does = commands.of(words)
    return does not in (commands.READS, commands.UNKNOWN) or does == commands.UNKNOWN and not limits.exist


def _as_written(overlay, match) -> str:
    word = match["single"] or match["double"] or match["plain"]
    found = overlay.to_read(word) if word and "/dev/" not in word else word
    return match[0] if found == word else shlex.quote(os.fspath(found))


def _redirected(overlay, sign: str, file: str) -> str:
    return f"{sign} {shlex.quote(os.fspath(overlay.to_write(file.strip(_QUOTES))))}"


def _as_if(words: list) -> None:
    """What the script may look for after a command that is not run: folders and files, made where the script finds them."""
    name, operands = commands.program(words), [word for word in words[1:] if not word.startswith("-")]
    if name == "mkdir":
        for folder in operands:
            os.makedirs(folder, exist_ok=True)
    elif name == "touch":
        for file in operands:
            open(file, "a").close()
    elif name == "cp" and len(operands) == 2 and os.path.isfile(operands[0]) and os.path.getsize(operands[0]) <= _MOST_COPIED:
        source, target = operands
        target = os.path.join(target, os.path.basename(source)) if os.path.isdir(target) else target
        with open(source, "rb") as file, open(target, "wb") as copy:
            shutil.copyfileobj(file, copy)
