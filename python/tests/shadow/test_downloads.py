"""Archives that a script fetches in each run, without the network."""

import io
import tarfile
import types
import zipfile

import pytest

from stoker.shadow.facade import downloads


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    notes: list = []
    return types.SimpleNamespace(request=types.SimpleNamespace(network=False, script=str(tmp_path / "data" / "train.py")),
                                 note=notes.append, notes=notes)


def opened(world, address):
    """What urllib gives for the address."""
    module = types.SimpleNamespace(urlopen=lambda url: pytest.fail(f"{url} was fetched"))
    downloads.hooks(world)["urllib.request"](module)
    return module.urlopen(address).read()


@pytest.mark.parametrize("name", ["cora.tgz", "cora.tar.gz", "cora.tar.xz", "cora.tar.bz2", "cora.tar"])
def test_what_was_unpacked_before_is_not_fetched_again(tmp_path, world, name):
    (tmp_path / "cora").mkdir()
    (tmp_path / "cora" / "cora.content").write_text("1 2")
    with tarfile.open(fileobj=io.BytesIO(opened(world, f"https://host.example/sets/{name}?x=1"))) as archive:
        assert archive.getnames() == []
        archive.extractall()
    assert (tmp_path / "cora" / "cora.content").read_text() == "1 2"
    assert len(world.notes) == 1 and f"{name} is not fetched; cora/, which lies there," in world.notes[0]


def test_an_archive_that_lies_there_is_what_the_script_gets(tmp_path, world):
    (tmp_path / "data" / "faces.zip").write_bytes(b"packed")
    assert opened(world, "https://host.example/faces.zip") == b"packed"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "one.png").write_bytes(b"")
    assert zipfile.ZipFile(io.BytesIO(opened(world, "https://host.example/other.zip"))).namelist() == []


@pytest.mark.parametrize("name", ["empty.tgz", "missing.tgz", "page.html", ".tgz"])
def test_all_else_is_fetched_as_ever(tmp_path, world, name):
    (tmp_path / "empty").mkdir()
    module = types.SimpleNamespace(urlopen=lambda url, timeout: (url, timeout))
    downloads.hooks(world)["urllib.request"](module)
    assert module.urlopen(f"https://host.example/{name}", timeout=3) == (f"https://host.example/{name}", 3)
    assert world.notes == []
    world.request.network = True
    assert downloads.hooks(world) == {}


def test_requests_gets_what_lies_there(tmp_path, world):
    requests = pytest.importorskip("requests")
    (tmp_path / "data" / "cora.tgz").write_bytes(b"packed")
    sent = requests.adapters.HTTPAdapter.send
    try:
        downloads.hooks(world)["requests.adapters"](requests.adapters)
        with requests.get("https://host.example/cora.tgz", stream=True) as answer:
            assert answer.status_code == 200 and answer.raw.read() == b"packed"
        assert requests.get("https://host.example/cora.tgz").content == b"packed"
    finally:
        requests.adapters.HTTPAdapter.send = sent
