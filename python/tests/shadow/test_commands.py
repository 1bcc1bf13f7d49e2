"""Command lines that a script hands to the shell, who started them, and files that are the user's."""

import functools
import importlib.util
import sys

import pytest

from stoker import whose
from stoker.shadow import manners, sites
from stoker.shadow.facade import libraries, processes


@pytest.mark.parametrize(("line", "commands"), [
    ("echo 'a; rm b' && ls", [["echo", "a; rm b"], ["ls"]]),
    ('echo "x | tee y"; rm x', [["echo", "x | tee y"], ["rm", "x"]]),
    ("A=1 nohup cat x 2>&1 | tee log", [["cat", "x", "2>&1"], ["tee", "log"]]),
    ("echo it\\'s; ls & wait", [["echo", "it's"], ["ls"], ["wait"]])])
def test_commands_of_a_line_end_outside_of_quotes(line, commands):
    assert processes._parts(line) == commands


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
