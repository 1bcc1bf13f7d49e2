"""Libraries that write down what a training tells them: installed ones stay off the network, absent ones are stood in for.

An import that the script can do without (`try: import wandb ... except ImportError`) fails as it would.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
import types

from ... import standins, whose
from . import unmodelled
from .silent import Silent

_NAMES = {"wandb", "mlflow", "comet_ml", "neptune", "clearml", "aim", "tensorboardX", "dvclive", "swanlab", "trackio", "visdom", "sacred"}
_TENSORBOARD = "torch.utils.tensorboard"


def hooks(world) -> dict:
    """What is done to those that are installed, once they are imported."""
    def always(module, name: str, **forced):
        original = getattr(module, name, None)
        if original is None:
            return  # another version has no such function
        setattr(module, name, functools.wraps(original)(lambda *args, **kwargs: original(*args, **{**kwargs, **forced})))

    def wandb(module):
        always(module, "init", mode="disabled")
        module.login = lambda *_, **__: True

    def mlflow(module):
        module.set_tracking_uri = module.set_registry_uri = lambda *_, **__: None

    if world.request.network:
        return {}
    return {"wandb": wandb, "mlflow": mlflow, "neptune": lambda m: always(m, "init_run", mode="debug")}


def install(world) -> None:
    sys.meta_path.append(_Finder(world))
    if importlib.util.find_spec("tensorboard") is None:
        sys.meta_path.insert(0, _Tensorboard(world))


def _asks() -> types.FrameType | None:
    """The frame of the import statement that is running, where it is the user's."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<frozen") and "importlib" not in name and not whose.is_ours(name):
            return frame if whose.is_users(name) else None
        frame = frame.f_back
    return None


@functools.cache
def _tries(file: str) -> tuple:
    """(first line, last line) of the bodies of a file's `try` statements that a failing import may end."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    return tuple((node.body[0].lineno, node.body[-1].end_lineno) for node in ast.walk(tree) if isinstance(node, ast.Try) and any(
        _catches(handler.type) for handler in node.handlers))


def _catches(kind) -> bool:
    """Whether `except KIND` catches a module that is not there."""
    if kind is None:
        return True
    names = {getattr(one, "id", getattr(one, "attr", "")) for one in (kind.elts if isinstance(kind, ast.Tuple) else [kind])}
    return bool(names & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _is_optional(frame) -> bool:
    return any(first <= frame.f_lineno <= last for first, last in _tries(frame.f_code.co_filename))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last in sys.meta_path, so that an installed library never gets here."""

    def __init__(self, world):
        self._world = world
        self._known: set = set()

    def find_spec(self, fullname, path=None, target=None):
        library = fullname.partition(".")[0]
        if library not in _NAMES and library not in unmodelled.ABSENT:
            return None
        if library not in self._known:
            frame = _asks()
            if frame is None or _is_optional(frame):
                return None
            self._known.add(library)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        library = module.__name__.partition(".")[0]
        standins.used.add(library)
        if library in _NAMES:
            self._world.note(f"{library} is not installed: it is stood in for by one that writes nothing")
        module.__dict__.update(_wandb() if module.__name__ == "wandb" else unmodelled.attributes(self._world, module.__name__))

        def missing(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Silent(name)

        module.__dict__.setdefault("__getattr__", missing)


class _Tensorboard(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """PyTorch's door to TensorBoard, which needs the package."""

    def __init__(self, world):
        self._world = world

    def find_spec(self, fullname, path=None, target=None):
        if fullname != _TENSORBOARD:
            return None
        frame = _asks()
        return None if frame is None or _is_optional(frame) else importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        standins.used.add("tensorboard")
        self._world.note("tensorboard is not installed: it is stood in for by one that writes nothing")
        module.SummaryWriter = module.FileWriter = module.RecordWriter = Silent("SummaryWriter")


class Configuration(dict):
    """wandb.config: a dict whose names are attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value

    def update(self, given=None, allow_val_change=None, **more):
        super().update(_as_dict(given), **more)

    def setdefaults(self, given):
        for name, value in _as_dict(given).items():
            self.setdefault(name, value)

    def as_dict(self):
        return dict(self)


def _as_dict(given) -> dict:
    return {} if given is None else dict(given) if hasattr(given, "keys") else dict(vars(given))


def _wandb() -> dict:
    """What scripts read of wandb: the configuration that they gave it, and in a sweep the first value of each parameter."""
    config, sweeps = Configuration(), []
    run = Silent("run", config=config, id="run", name="run", dir="wandb", step=0, summary=Silent("summary"))

    def init(*args, config=None, **kwargs):
        given = config
        names["config"].update(given)
        sys.modules["wandb"].run = run
        return run

    def sweep(description=None, *args, **kwargs):
        sweeps.append((description or {}).get("parameters", {}))
        return "sweep"

    def agent(sweep_id=None, function=None, *args, **kwargs):
        for name, told in (sweeps[-1] if sweeps else {}).items():
            if isinstance(told, dict):
                config.setdefault(name, told.get("value", (told.get("values") or [told.get("min")])[0]))
        if function is not None:
            function()

    names = {"config": config, "run": None, "init": init, "sweep": sweep, "agent": agent, "login": lambda *_, **__: True}
    return names
