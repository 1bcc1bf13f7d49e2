#!/usr/bin/env python3
"""run.py --binary STOKER [--pictures DIR]: what --html writes, opened in a real headless Chromium.

Each page must draw all its blocks, wide and narrow, light, dark and printed, without a complaint of its scripts or of
its own security policy, without asking for anything but itself, and below its limit of bytes; what is named like markup
must stay text. Without a Chromium the check says so and exits 77, which ctest takes as skipped.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import browser as chromium

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_BYTES = 500_000
SKIPPED = 77
HOST = "--host cores=8,ram=64G".split()
EVIL = "<img src=x onerror=document.title='owned'><script>document.title='owned'<"


def pages(binary: str, folder: pathlib.Path) -> dict:
    """Name -> (command behind stoker, kinds of blocks that the page has to show)."""
    files = REPOSITORY / "tests/golden/files"
    for name in ("training_rows.json", "tiny_cpu.step.gz"):
        shutil.copy(files / name, folder)
    subprocess.run([binary, "calibrate", str(files / "cpu_calibration.json"), "-o", "cpu.toml"], cwd=folder, check=True,
                   capture_output=True)
    evil = folder / f"{EVIL}.step.gz"
    shutil.copy(REPOSITORY / "data/zoo/resnet18.fp32.step.gz", evil)
    return {
        "plan": (["plan", "resnet50", "--gpu", "v100-16gb", "--sample-cost", "9ms", "--samples", "100000", "--price", "2.5",
                  *HOST], ["heat_map", "scatter", "table", "stack", "bars", "lanes"]),
        "plan-cpu": (["plan", "tiny_cpu.step.gz", "--gpu", "cpu.toml"], ["heat_map", "scatter", "stack", "bars"]),
        "predict": (["predict", "gpt2", "--gpu", "a100-40gb", "--precision", "amp-bf16", *HOST],
                    ["area", "table", "treemap", "stack", "bars", "scatter"]),
        "predict-no": (["predict", "resnet50", "--gpu", "t4", "--batch", "4096", *HOST], ["area", "table", "treemap"]),
        "validate": (["validate", "training_rows.json", "--machine", "cpu.toml"], ["pairs", "table"]),
        "evil": (["predict", evil.name, "--gpu", "t4", *HOST], ["area", "treemap"]),
    }


def write_page(binary: str, folder: pathlib.Path, name: str, command: list) -> pathlib.Path:
    page = folder / f"{name}.html"
    done = subprocess.run([binary, *command, "--html", str(page)], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), f"{name}: exit {done.returncode}: {done.stderr}"
    assert page.stat().st_size < MOST_BYTES, f"{name}: {page.stat().st_size} bytes"
    text = page.read_text()
    for outside in ("http://www.w3.org/", "https://d3js.org"):  # names of namespaces, which nothing fetches
        text = text.replace(outside, "")
    for forbidden in ("http://", "https://", "eval(", "innerHTML =\"", "@DATA@", "@TEXT@"):
        assert forbidden not in text, f"{name}: holds {forbidden}"
    return page


def check_blocks(tab, name: str, kinds: list) -> None:
    for kind in kinds:
        drawn = "table tbody tr" if kind == "table" else "svg *"
        assert tab.comes(f"document.querySelectorAll('.block.{kind} {drawn}').length > 0"), f"{name}: draws no {kind}"
    broken = tab.run("[...document.querySelectorAll('svg *')].filter(n => [...n.attributes]"
                     ".some(a => /NaN|undefined|Infinity/.test(a.value))).length")
    assert broken == 0, f"{name}: {broken} marks have no place"
    wide = tab.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{name}: {wide} pixels wider than the window"


def check_habits(tab, name: str) -> None:
    """Pointing shows a band; a click on a column sorts; CSV carries bands; the other theme comes by a button."""
    tab.run("document.querySelector('.figure').dispatchEvent(new PointerEvent('pointerenter', {clientX: 50, clientY: 50}))")
    assert "90 % band" in tab.run("document.getElementById('tip').textContent"), f"{name}: no band when pointed at"
    column = "document.querySelectorAll('section .block.table table')[0]"
    tab.run(f"{column}.querySelectorAll('th button')[0].click()")
    assert tab.run(f"{column}.querySelector('th').getAttribute('aria-sort')") == "descending", f"{name}: sorts nothing"
    tab.run("navigator.clipboard.writeText = async text => { window.copied = text; }")
    tab.run("document.querySelector('.controls.csv button').click()")
    copied = tab.run("window.copied") or ""
    assert len(copied.splitlines()) > 1 and "," in copied, f"{name}: copies no CSV: {copied!r}"
    before = tab.run("getComputedStyle(document.body).backgroundColor")
    tab.run("document.querySelector('header button').click()")
    assert tab.run("getComputedStyle(document.body).backgroundColor") != before, f"{name}: one theme only"


def check_scrubbing(tab, name: str) -> None:
    """Dragging the mark below the loader's timeline shows another part of it."""
    tab.run("document.querySelector('.lanes svg').scrollIntoView({block: 'center'})")
    box = tab.run("(b => [b.left, b.top, b.width, b.height])(document.querySelector('.brush .selection').getBoundingClientRect())")
    first = tab.run("document.querySelector('.lanes .tick text').textContent")
    x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
    for kind, at in (("mousePressed", x), ("mouseMoved", x + 90), ("mouseMoved", x + 180), ("mouseReleased", x + 180)):
        tab.ask("Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", buttons=1, clickCount=1)
    assert tab.run("document.querySelector('.lanes .tick text').textContent") != first, f"{name}: does not move"


def check_page(tab, page: pathlib.Path, kinds: list, pictures: pathlib.Path | None) -> None:
    name = page.stem
    for look, width, scheme, media in (("light", 1180, "light", ""), ("dark", 1180, "dark", ""),
                                       ("narrow", 390, "light", ""), ("print", 800, "dark", "print")):
        tab.open(page, width, scheme, media)
        check_blocks(tab, f"{name}, {look}", kinds)
        if pictures and look == "print":
            tab.printed(pictures / f"{name}-print.pdf")
        elif pictures:
            tab.picture(pictures / f"{name}-{look}.png")
    tab.open(page)
    if name == "plan":
        check_habits(tab, name)
        check_scrubbing(tab, name)
    if name == "evil":
        assert tab.run("document.title") == f"{EVIL}.step.gz - Stoker", tab.run("document.title")
        assert tab.run("document.querySelectorAll('img, main script').length") == 0, "a name became markup"
        assert EVIL in tab.run("document.querySelector('h1').textContent")
    assert not tab.complaints, f"{name}: {tab.complaints}"
    outside = [url for url in tab.requests if not url.startswith(("file:", "about:"))]
    assert not outside, f"{name}: asks for {outside}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--pictures", type=pathlib.Path, help="keep pictures of every page here, to be looked at")
    arguments = parser.parse_args()
    program = chromium.find_chromium()
    if program is None:
        print("SKIPPED: no Chromium here (Debian: apt-get install chromium), so no page was opened", file=sys.stderr)
        return SKIPPED
    binary = os.path.abspath(arguments.binary)
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        try:
            tab = chromium.Browser(program)
        except (OSError, RuntimeError, TimeoutError) as error:
            print(f"SKIPPED: {program} does not start here ({error}), so no page was opened", file=sys.stderr)
            return SKIPPED
        try:
            for name, (command, kinds) in pages(binary, folder).items():
                page = write_page(binary, folder, name, command)
                check_page(tab, page, kinds, arguments.pictures)
                print(f"{name}: {page.stat().st_size / 1000:.0f} kB", flush=True)
        finally:
            tab.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
