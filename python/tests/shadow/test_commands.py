"""Command lines that a script hands to the shell, who started them, and files that are the user's."""

import ast
import bz2
import copy
import functools
import importlib.util
import os
import pathlib
import sys
import tarfile
import types

import pytest

from stoker import whose
from stoker.shadow import manners, sites
from stoker.shadow.facade import commands, libraries, loaders, processes, retries


@pytest.mark.parametrize(("line", "parts"), [
    ("echo 'a; rm b' && ls", [["echo", "a; rm b"], ["ls"]]),
    ('echo "x | tee y"; rm x', [["echo", "x | tee y"], ["rm", "x"]]),
    ("A=1 nohup cat x 2>&1 | tee log", [["cat", "x", "2>&1"], ["tee", "log"]]),
    ("echo it\\'s; ls & wait", [["echo", "it's"], ["ls"], ["wait"]])])
def test_commands_of_a_line_end_outside_of_quotes(line, parts):
    assert commands.parts(line) == parts


def redirected(line, overlay):
    return processes._REDIRECTED.sub(
        lambda m: m[0] if m["quoted"] else processes._redirected(overlay, m["sign"], m["file"]), line)


def test_only_redirections_are_led_elsewhere(tmp_path):
    overlay = manners.Overlay(str(tmp_path))
    for line in ("awk '$1 > 5' f", 'echo "a -> b"', "cat x 2>&1", "cat x > /dev/null"):
        assert redirected(line, overlay) == line
    inside = overlay.inside("/data")
    assert redirected("sort x > /data/a 2> '/data/b c' &> \"/data/d\"", overlay) == f"sort x > {inside}/a 2> '{inside}/b c' &> {inside}/d"


def test_a_command_is_the_scripts_wherever_this_package_lies(monkeypatch):
    packages = "/venv/lib/python3.11/site-packages"
    monkeypatch.setattr(whose, "OURS", (f"{packages}/stoker/",))
    through = {}
    for name in ("stoker", "other"):
        exec(compile("def call(what):\n    return what()\n", f"{packages}/{name}/module.py", "exec"), space := {})
        through[name] = space["call"]
    asked = functools.partial(sites.starter, 1)
    assert through["stoker"](asked).file == __file__ and through["other"](asked) is None


def test_a_library_that_was_only_asked_for_gets_its_stand_ins_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "library_of_a_test.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    monkeypatch.setattr(sys, "meta_path", [libraries._After({"library_of_a_test": lambda m: seen.append(m.value)}), *sys.meta_path])
    assert importlib.util.find_spec("library_of_a_test") is not None and not seen
    module = importlib.import_module("library_of_a_test")
    assert seen == [1]
    importlib.reload(module)
    monkeypatch.delitem(sys.modules, "library_of_a_test")
    assert seen == [1]


def test_folders_are_told_by_their_whole_names(tmp_path):
    overlay = manners.Overlay(str(tmp_path))
    assert all(map(overlay.is_outside, ("/development/net.py", f"{tmp_path}s/file", "/home/me/net.py")))
    assert not any(map(overlay.is_outside, ("/dev/null", "/dev", "/proc/self", str(tmp_path), str(tmp_path / "file"))))


def test_what_modules_of_pythons_keep_of_open_and_os_is_led_elsewhere_and_back(tmp_path):
    users, scratch = tmp_path / "users", tmp_path / "scratch"
    users.mkdir()
    scratch.mkdir()
    (users / "kept").write_text("as it was")
    before = [getattr(keeper, name) for keeper, name, _, _ in manners._KEEPERS]
    with manners.for_a_while(str(scratch)):
        (users / "kept").unlink()
        (users / "kept").rename(users / "other")
        (users / "made").write_text("by the script")
        (users / "folder").mkdir()
        with tarfile.open(users / "a.tar", "w") as archive:
            archive.add(users / "made")
        with bz2.open(users / "a.bz2", "wt") as out:
            out.write("by the script")
        assert (users / "made").read_text() == bz2.open(users / "a.bz2", "rt").read() == "by the script"
        assert len(tarfile.open(users / "a.tar").getnames()) == 1
    assert os.listdir(users) == ["kept"] and (users / "kept").read_text() == "as it was"
    assert [getattr(keeper, name) for keeper, name, _, _ in manners._KEEPERS] == before
    (users / "after").write_text("x")
    assert pathlib.Path(users / "after").exists()


def test_unknown_programs_run_only_where_something_keeps_them_from_writing():
    kept, free = types.SimpleNamespace(exist=True), types.SimpleNamespace(exist=False)
    assert not processes.is_refused(["some-program"], kept) and processes.is_refused(["some-program"], free)
    assert not processes.is_refused(["nproc"], free) and processes.is_refused(["rm", "x"], kept)


@pytest.mark.parametrize(("body", "goes_on"), [
    ("print('out of memory'); raise", False), ("raise SystemExit('out of memory') from None", False), ("size //= 2; continue", True),
    ("if 'out of memory' not in str(e): raise\n        size //= 2", True),
    ("if 'out of memory' in str(e):\n            continue\n        raise", True)])
def test_who_says_that_memory_ended_may_end_too(body, goes_on):
    text = f"while True:\n    try:\n        step()\n    except OutOfMemoryError as e:\n        {body}\n"
    assert any(map(retries._goes_on, ast.walk(ast.parse(text)))) is goes_on


def test_a_sampler_that_fails_before_the_loop_sets_it_up_is_left_to_the_loop():
    class Sampler:
        def __iter__(self):
            yield [len(self.order)]

    facts = types.SimpleNamespace(batch=None, site="")
    loaders._look_at_batches(None, Sampler(), facts)
    assert facts.batch is None
    resized = copy.copy(loaders._Resized([[1, 2], [3, 4]], 3))
    assert list(resized) == [[1, 2, 1], [3, 4, 3]] and len(resized) == 2
