"""Finds the config.json of a model: a file, a folder, the hub's cache on this computer, or the hub by huggingface_hub."""

from __future__ import annotations

import json
import os
import pathlib
import re

from ..errors import CaptureError
from . import fetching, known

LARGEST = 4 << 20  # bytes; real ones have a few thousand
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def hub_folder() -> pathlib.Path:
    """The cache's folder, as huggingface_hub decides it."""
    given = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return pathlib.Path(given or os.path.join(home, "hub")).expanduser()


def _cached(name: str) -> pathlib.Path | None:
    """The newest snapshot's config.json, main's first."""
    folder = hub_folder() / ("models--" + name.replace("/", "--"))
    try:
        main = (folder / "refs" / "main").read_text().strip()
        if (folder / "snapshots" / main / "config.json").is_file():
            return folder / "snapshots" / main / "config.json"
    except OSError:
        pass
    found = [path for path in folder.glob("snapshots/*/config.json") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def find(name: str) -> pathlib.Path | dict:
    """The path of the config.json that `name` (after "hf:") means, or the configuration where it is a well-known model's."""
    path = pathlib.Path(name).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise CaptureError(f"the folder {name} has no config.json: give the folder that save_pretrained or a download wrote")
        return path / "config.json"
    if not _NAME.fullmatch(name):
        raise CaptureError(f"'hf:{name}' is neither a folder, a config.json nor ORG/NAME on the hub: check the path")
    return _cached(name) or known.configuration(name) or fetching.fetched(name, hub_folder())


def read(path: pathlib.Path) -> dict:
    """The configuration; of a model of several parts the text's, with what the whole says of itself."""
    try:
        if path.stat().st_size > LARGEST:
            raise CaptureError(f"{path} has more than {LARGEST >> 20} MiB, so it is no configuration of a model")
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path} cannot be read as a configuration ({error}): download it again") from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise CaptureError(f"{path} names no model_type, so it is no configuration of transformers "
                           "(diffusers', timm's and sentence-transformers' differ): give a FILE.py:FUNCTION")
    return config
