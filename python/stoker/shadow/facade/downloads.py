"""Archives that a script fetches in each run: where one lies beside it, packed or unpacked, that is what it gets without the network.

In place of one that was unpacked before an empty archive is given, whose extraction leaves what lies there as it is.
"""

from __future__ import annotations

import email.message
import io
import os
import pathlib
import tarfile
import urllib.parse
import urllib.response
import zipfile

from .. import sites

_PACKED = {".tgz": "w:gz", ".tar.gz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz", ".tar": "w", ".zip": "zip"}


def hooks(world) -> dict:
    """What is done to modules once they are imported; nothing where the script may reach the network."""
    if world.request.network:
        return {}
    return {"requests.adapters": lambda m: _requests(world, m), "urllib.request": lambda m: _urllib(world, m)}


def _requests(world, module) -> None:
    original = module.HTTPAdapter.send

    def send(self, request, *args, **kwargs):
        content = _content(world, request.url)
        if content is None:
            return original(self, request, *args, **kwargs)
        from urllib3.response import HTTPResponse

        raw = HTTPResponse(body=io.BytesIO(content), status=200, headers={"Content-Length": str(len(content))}, preload_content=False)
        return self.build_response(request, raw)

    module.HTTPAdapter.send = send


def _urllib(world, module) -> None:
    original = module.urlopen

    def urlopen(url, *args, **kwargs):
        content = _content(world, url if isinstance(url, str) else url.full_url)
        if content is None:
            return original(url, *args, **kwargs)
        headers = email.message.Message()
        headers["Content-Length"] = str(len(content))
        return urllib.response.addinfourl(io.BytesIO(content), headers, url if isinstance(url, str) else url.full_url, 200)

    module.urlopen = urlopen


def _content(world, url: str) -> bytes | None:
    """The bytes of the archive that the address names, or of an empty one; None: nothing of it lies in the script's folders."""
    name = os.path.basename(urllib.parse.urlsplit(url).path)
    suffix = next((suffix for suffix in _PACKED if name.endswith(suffix) and name != suffix), None)
    if suffix is None:
        return None
    for folder in dict.fromkeys((os.getcwd(), os.path.dirname(os.path.abspath(world.request.script)))):
        packed, unpacked = pathlib.Path(folder, name), pathlib.Path(folder, name.removesuffix(suffix))
        if packed.is_file():
            world.note(f"{sites.here(2)}: {name} is not fetched; the one that lies there is taken")
            return packed.read_bytes()
        if unpacked.is_dir() and any(unpacked.iterdir()):
            world.note(f"{sites.here(2)}: {name} is not fetched; {unpacked.name}/, which lies there, is taken for what it holds")
            return _empty(_PACKED[suffix])
    return None


def _empty(mode: str) -> bytes:
    buffer = io.BytesIO()
    if mode == "zip":
        zipfile.ZipFile(buffer, "w").close()
    else:
        tarfile.open(fileobj=buffer, mode=mode).close()
    return buffer.getvalue()
