"""Fetches a config.json through the user's own huggingface_hub, and says in one sentence what stood in the way.

huggingface_hub repeats a failed look-up five times, which takes 23 seconds without a network. One look-up that is not repeated
goes first here: it asks the same address with the same login and proxies.
"""

from __future__ import annotations

import pathlib
import threading

from ..errors import CaptureError

PATIENCE = 4.0  # seconds for the hub's first answer; a name server that is silent counts, which the library's timeouts leave out


def _within(seconds: float, call):
    """What `call` returns or raises; TimeoutError where neither came in time."""
    outcome = {}

    def work():
        try:
            outcome["value"] = call()
        except Exception as error:  # the library has a class for each cause, and they change
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)  # so that a silent name server holds up no exit
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def _causes(error: BaseException) -> list:
    """The error and what it was raised from: the library wraps those of its transport."""
    found = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _status(error: BaseException) -> int | None:
    return next((code for one in _causes(error)
                 if isinstance(code := getattr(getattr(one, "response", None), "status_code", None), int)), None)


_LOG_IN = "log in (hf auth login, or HF_TOKEN)"


def _reason_and_cure(error: BaseException, name: str) -> tuple:
    """(what is wrong, what helps beside a local copy); the cure is empty where only a local copy does."""
    kinds = [kind.__name__ for one in _causes(error) for kind in type(one).__mro__]
    status = _status(error)
    if "GatedRepoError" in kinds:
        return ("the hub shows it only to those who accepted its licence",
                f"accept it on the model's page and {_LOG_IN}")
    if "RepositoryNotFoundError" in kinds or (status == 404 and "EntryNotFoundError" not in kinds):
        prefix = "" if "/" in name else ", with the organisation (ORG/NAME)"
        return "the hub shows no model of that name", f"check the name{prefix}, or {_LOG_IN} if it is private"
    if "LocalEntryNotFoundError" not in kinds and "EntryNotFoundError" in kinds:
        return ("that repository has no config.json, so it is no model of transformers",
                "give a FILE.py:FUNCTION that builds it")
    if "OfflineModeIsEnabled" in kinds:
        return "HF_HUB_OFFLINE forbids asking the hub", "unset it"
    if status in (401, 403):
        return f"the hub refused this login (HTTP {status})", _LOG_IN
    if status == 407 or "ProxyError" in kinds:
        return "the proxy did not let it through", "check HTTPS_PROXY"
    if status is not None:
        return f"the hub answered HTTP {status}", "try again later"
    if "CertificateError" in kinds or any("CERTIFICATE_VERIFY" in str(one) for one in _causes(error)):
        return "the hub's certificate is not trusted here", "check the proxy's certificate (SSL_CERT_FILE, REQUESTS_CA_BUNDLE)"
    return "there is no way to the hub from here", "behind a proxy set HTTPS_PROXY, for a mirror HF_ENDPOINT"


def fetched(name: str, cache: pathlib.Path, patience: float = PATIENCE) -> pathlib.Path:
    """The path of the model's config.json, which the hub has sent; raises CaptureError with the cure."""
    local = (f"give a folder with its config.json (hf:FOLDER), or fetch that where there is a network: "
             f"hf download {name} config.json")
    try:
        import huggingface_hub
    except ImportError:
        raise CaptureError(f"hf:{name} is not in {cache}, and huggingface_hub, which could fetch its config.json, "
                           f"is not installed (pip install huggingface_hub); {local}") from None
    try:
        address = huggingface_hub.hf_hub_url(name, "config.json")
        _within(patience, lambda: huggingface_hub.get_hf_file_metadata(address, timeout=patience))
        return pathlib.Path(huggingface_hub.hf_hub_download(name, "config.json", etag_timeout=patience))
    except Exception as error:
        reason, cure = _reason_and_cure(error, name)
        raise CaptureError(f"hf:{name} is not in {cache}, and {reason}: {cure}, or {local}") from None
