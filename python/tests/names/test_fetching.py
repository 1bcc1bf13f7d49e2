"""hf:ORG/NAME where the hub has to be asked: one sentence with the cure, soon, whatever stands in the way."""

import sys
import threading
import types

import pytest

from stoker import CaptureError
from stoker.hub import fetching, known


def hub(monkeypatch, ask, send=None):
    """A huggingface_hub whose look-up is `ask`; sends are counted."""
    sent = []
    module = types.ModuleType("huggingface_hub")
    module.hf_hub_url = lambda name, file: f"https://hub.example/{name}/{file}"
    module.get_hf_file_metadata = lambda address, timeout: ask()
    module.hf_hub_download = lambda name, file, etag_timeout: sent.append(name) or (send or "config.json")
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return sent


def named(kind, *bases, status=None):
    error = type(kind, bases or (Exception,), {})("words of the library")
    if status:
        error.response = types.SimpleNamespace(status_code=status)
    return error


def refusal(monkeypatch, tmp_path, error, name="some/model"):
    def ask():
        raise error

    sent = hub(monkeypatch, ask)
    with pytest.raises(CaptureError) as caught:
        fetching.fetched(name, tmp_path)
    assert sent == [], "what cannot be looked up is not asked for again"
    sentence = str(caught.value)
    assert "\n" not in sentence and "give a folder with its config.json" in sentence
    return sentence


def test_what_the_hub_has_is_fetched(monkeypatch, tmp_path):
    sent = hub(monkeypatch, lambda: None, send=str(tmp_path / "config.json"))
    assert fetching.fetched("some/model", tmp_path) == tmp_path / "config.json"
    assert sent == ["some/model"]


@pytest.mark.parametrize("kind, status, words", [
    ("GatedRepoError", 403, "accept it on the model's page and log in"),
    ("RepositoryNotFoundError", 401, "check the name, or log in"),
    ("HfHubHTTPError", 404, "check the name, or log in"),
    ("RemoteEntryNotFoundError", 404, "has no config.json"),
    ("HfHubHTTPError", 401, r"refused this login (HTTP 401): log in"),
    ("HfHubHTTPError", 407, "check HTTPS_PROXY"),
    ("ProxyError", None, "check HTTPS_PROXY"),
    ("HfHubHTTPError", 503, "HTTP 503: try again later"),
    ("OfflineModeIsEnabled", None, "HF_HUB_OFFLINE forbids"),
    ("ConnectError", None, "there is no way to the hub from here"),
])
def test_each_obstacle_has_its_cure(monkeypatch, tmp_path, kind, status, words):
    bases = (type("EntryNotFoundError", (Exception,), {}),) if kind == "RemoteEntryNotFoundError" else ()
    assert words in refusal(monkeypatch, tmp_path, named(kind, *bases, status=status))


def test_a_cause_within_is_found(monkeypatch, tmp_path):
    outer = named("LocalEntryNotFoundError", type("EntryNotFoundError", (Exception,), {}))
    outer.__cause__ = named("ProxyError")
    assert "check HTTPS_PROXY" in refusal(monkeypatch, tmp_path, outer)


def test_a_name_without_its_organisation_is_told_of_it(monkeypatch, tmp_path):
    assert "(ORG/NAME)" in refusal(monkeypatch, tmp_path, named("RepositoryNotFoundError", status=404), "phi-2")


def test_a_hub_that_never_answers_is_left(monkeypatch, tmp_path):
    release = threading.Event()
    hub(monkeypatch, release.wait)
    with pytest.raises(CaptureError, match="there is no way to the hub from here"):
        fetching.fetched("some/model", tmp_path, patience=0.05)
    release.set()


def test_the_real_library_meets_a_hub_that_refuses(monkeypatch, tmp_path):
    """One request for each name, of a server of our own that answers as the hub does."""
    library = pytest.importorskip("huggingface_hub")
    import http.server

    asked = []

    class Hub(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            asked.append(self.path)
            code, name = (403, "GatedRepo") if "gated" in self.path else (404, "RepoNotFound")
            self.send_response(code)
            self.send_header("X-Error-Code", name)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(library, "hf_hub_url", lambda name, file: f"{address}/{name}/resolve/main/{file}")
    try:
        with pytest.raises(CaptureError, match="accepted its licence"):
            fetching.fetched("some/gated", tmp_path, patience=60)
        with pytest.raises(CaptureError, match="shows no model of that name"):
            fetching.fetched("some/nothing", tmp_path, patience=60)
    finally:
        server.shutdown()
        server.server_close()
    assert len(asked) == 2, "nothing was asked again"


@pytest.mark.parametrize("typed, listed", [
    ("llama-2-7b", "meta-llama/Llama-2-7b-hf"), ("meta-llama/llama-3-8b", "meta-llama/Meta-Llama-3-8B"),
    ("google/gemma-2b", "google/gemma-2b"), ("mistral-7b", "mistralai/Mistral-7B-v0.1"),
])
def test_listed_models_are_known_without_what_people_leave_out(typed, listed):
    assert known.configuration(typed) == known.configuration(listed) is not None


def test_another_organisations_model_is_not_taken_for_a_listed_one():
    assert known.configuration("somebody/llama-2-7b") is None
