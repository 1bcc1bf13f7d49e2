"""The folder of what can be made again: one rule, the binary's (base_test.cc asks the same of it)."""

import pathlib

import pytest

from stoker import cache


@pytest.mark.parametrize(("given", "home", "folder"), [
    ("/caches", "/home/ann", "/caches/stoker"),
    (None, "/home/ann", "/home/ann/.cache/stoker"),
    ("", "/home/ann", "/home/ann/.cache/stoker"),
    (None, None, "/tmp/.cache/stoker"),
    (None, "", "/tmp/.cache/stoker"),
])
def test_the_folder_follows_the_environment(monkeypatch, given, home, folder):
    for name, value in (("XDG_CACHE_HOME", given), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache.cache_folder() == pathlib.Path(folder)
