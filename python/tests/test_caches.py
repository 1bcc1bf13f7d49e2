"""The folder of what can be made again: what goes from it, and what stays."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

from places import PYTHON
from stoker import caches, shim, step_file

DAY = 86_400.0
NOW = 2_000_000_000.0


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def file(name: str, days: float, size: int = 10):
    """A file of the cache that was used so many days before NOW."""
    path = caches.folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (NOW - days * DAY, NOW - 300 * DAY))
    return path


def left() -> set:
    return {path.name for path in caches.folder().rglob("*") if path.is_file()}


def test_what_nobody_has_used_for_long_goes():
    file("steps/old.step.gz", 91)
    file("scripts/new.step.gz", 89)
    file("fake-cuda-2.0-ab.so", 200)
    file("objects/Net_0123.py", 100)
    file("objects/Net_0123.pickle", 2)
    file("input-runs.json", 400)
    gone = {os.path.basename(path) for path in caches.prune(NOW)}
    assert gone == {"old.step.gz", "fake-cuda-2.0-ab.so"}
    assert left() == {"new.step.gz", "Net_0123.py", "Net_0123.pickle", "input-runs.json"}


def test_what_was_used_longest_ago_goes_where_it_is_too_much():
    for number in range(6):
        file(f"steps/{number}.step.gz", number, 100)
    assert len(caches.prune(NOW, most_bytes=350)) == 3
    assert left() == {"0.step.gz", "1.step.gz", "2.step.gz"}


def test_what_was_used_just_now_stays_however_much_it_is():
    file("steps/one.step.gz", 0.01, 1000)
    file("steps/two.step.gz", 0.02, 1000)
    assert caches.prune(NOW, most_bytes=10) == []


def test_what_a_process_holds_stays_and_goes_with_it(tmp_path):
    path = file("objects/Net_ab.py", 400)
    other = file("objects/Net_ab.pickle", 400)
    code = f"from stoker import caches\nassert caches.hold({str(path)!r})\nprint('held', flush=True)\ninput()\n"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON))) as holder:
        assert holder.stdout.readline() == "held\n"
        for one in (path, other):
            os.utime(one, (NOW - 400 * DAY, NOW - 400 * DAY))
        assert caches.prune(NOW) == []
        holder.communicate("\n")
    assert len(caches.prune(NOW)) == 2 and not path.exists()


def test_holding_marks_as_used_and_tells_what_is_gone(tmp_path):
    path = file("steps/a.step.gz", 400)
    changed = path.stat().st_mtime_ns
    assert caches.hold(str(path)) and path.stat().st_atime > time.time() - 60 and path.stat().st_mtime_ns == changed
    path.unlink()
    assert not caches.hold(str(path))


def test_links_and_folders_that_are_somebody_elses_stay(tmp_path):
    kept = tmp_path / "weights.bin"
    kept.write_bytes(b"x")
    (caches.folder() / "steps").mkdir(parents=True)
    (caches.folder() / "steps" / "link.step.gz").symlink_to(kept)
    file("mine/notes.txt", 1000)
    assert caches.prune(NOW + 900 * DAY) == [] and kept.exists()


def test_a_step_file_that_is_written_there_prunes(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(caches, "prune", lambda: seen.append(1))
    step_file.write({"a": 1}, str(tmp_path / "elsewhere.step.gz"))
    assert not seen
    (caches.folder() / "scripts").mkdir(parents=True)
    step_file.write({"a": 1}, str(caches.folder() / "scripts" / "x.step.gz"))
    assert seen == [1]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners are those of a Unix")
def test_what_others_can_write_is_not_run(monkeypatch):
    library, folder = file("fake-cuda-1.so", 0), caches.folder()
    assert caches.not_ours(library) == "" == caches.not_ours(folder / "not-there.so")
    library.chmod(0o646)
    assert caches.not_ours(library).startswith(f"others can write {library}, and what lies there is run: make it yours alone")
    library.chmod(0o644)
    folder.chmod(0o777)
    assert f"others can write {folder}," in caches.not_ours(library)
    folder.chmod(0o1777)  # as /tmp: nobody can replace what another one has put there
    assert caches.not_ours(library) == ""
    folder.chmod(0o775)
    monkeypatch.setattr(os, "getegid", lambda: folder.stat().st_gid + 1)
    assert f"others can write {folder}," in caches.not_ours(library)
    folder.chmod(0o755)
    if os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    else:
        os.chown(library, 54321, -1)
    assert "others can write" in caches.not_ours(library)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="files can be given to others by root alone")
def test_what_a_link_of_others_leads_to_is_not_run(tmp_path):
    folder, library = tmp_path / "ours", caches.folder() / "fake-cuda-1.so"
    folder.mkdir()
    (folder / library.name).touch()
    library.parent.parent.mkdir(parents=True, exist_ok=True)
    library.parent.symlink_to(folder)
    assert caches.not_ours(library) == ""
    os.chown(library.parent, 54321, -1, follow_symlinks=False)
    assert f"others can write {library.parent}," in caches.not_ours(library)


def test_a_library_that_others_can_write_is_not_loaded():
    folder = caches.folder()
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(shim.ShimError, match="set XDG_CACHE_HOME to a folder that is"):
        shim.library_path()


@pytest.mark.parametrize(("given", "home", "folder"), [
    ("/caches", "/home/ann", "/caches/stoker"),
    (None, "/home/ann", "/home/ann/.cache/stoker"),
    ("", "/home/ann", "/home/ann/.cache/stoker"),
    (None, None, f"/tmp/cache-{os.getuid()}/stoker"),
    (None, "", f"/tmp/cache-{os.getuid()}/stoker"),
])
def test_the_folder_follows_the_environment_by_the_binarys_rule(monkeypatch, given, home, folder):
    for name, value in (("XDG_CACHE_HOME", given), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert caches.folder() == pathlib.Path(folder)
