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

LEAST_CONTRAST = 4.5  # of small text against what is behind it: WCAG 2.2, 1.4.3
# The faintest text outside of charts: [contrast, text].
FAINTEST = """(() => {
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const light = v => v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const color = numbers(getComputedStyle(node).backgroundColor);
      if (color.length === 3) return luminance(color);
    }
    return 1;
  };
  let least = [21, ""];
  for (const node of document.querySelectorAll("main *:not(svg *)")) {
    const text = [...node.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent).join("").trim();
    if (!text || !node.checkVisibility()) continue;
    const pair = [luminance(numbers(getComputedStyle(node).color)), behind(node)];
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < least[0]) least = [contrast, text];
  }
  return least;
})()"""


HERE = pathlib.Path(__file__).resolve().parent
PYTHON = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "STOKER_PYTHON": sys.executable}

# A loop that waits for its data, recorded without PyTorch.
OBSERVED = """
import time
import stoker
for rank in (0, 1):
    observer = stoker.Observer(f"run{rank}.obs.jsonl", phases=["augment"])
    for step in range(80):
        with observer.phase("wait"):
            time.sleep(0.003 if step % 10 == 0 else 0.001)
        with observer.step(batch=32):
            for name in ("augment", "forward", "backward"):
                with observer.phase(name):
                    time.sleep(0.0005)
    observer.close()
"""


def make_recordings(binary: str, folder: pathlib.Path) -> None:
    """What the verbs of recordings and studies read: a snapshot and made-up names, a watch, trials, a search, an observation."""
    recorded = REPOSITORY / "src/snapshot/testdata/recorded"
    for name in ("training", "tight", "expandable"):
        shutil.copy(recorded / f"{name}.pickle.gz", folder)

    def run(*command):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=PYTHON)
        assert done.returncode in (0, 1), f"{command}: {done.stderr}"

    busy = "import time\nuntil = time.time() + 5\nwhile time.time() < until: sum(range(20000)); time.sleep(0.002)"
    run(binary, "watch", "-o", "run.watch", "--plain", "--", sys.executable, "-c", busy)
    trial = [sys.executable, str(HERE / "inputs/train_curve.py"), "--lr", "{lr}", "--batch", "{batch}", "--seed", "{seed}"]
    run(binary, "sweep", "-o", "study.db", "--vary", "lr=0.1,0.01,0.001", "--vary", "batch=16,32,64,128", "--repeat", "2", "--metric",
        "loss:min", "--metric", "accuracy:max", "--cores", "1", "--", *trial)
    run(binary, "tune", "-o", "tune.db", "--lr", "1e-4..1e-1", "--batch", "16..64x2", "--metric", "accuracy", "--probe-steps", "10",
        "--no-final", "--", *trial[:-2])
    run(sys.executable, "-c", OBSERVED)


def pages(binary: str, folder: pathlib.Path) -> dict:
    """Name -> (command behind stoker, kinds of blocks that the page has to show)."""
    files = REPOSITORY / "tests/golden/files"
    for name in ("training_rows.json", "tiny_cpu.step.gz"):
        shutil.copy(files / name, folder)
    subprocess.run([binary, "calibrate", str(files / "cpu_calibration.json"), "-o", "cpu.toml"], cwd=folder, check=True,
                   capture_output=True)
    evil = folder / f"{EVIL}.step.gz"
    shutil.copy(REPOSITORY / "data/zoo/resnet18.fp32.step.gz", evil)
    make_recordings(binary, folder)
    plan = ["--sample-cost", "9ms", "--samples", "100000", *HOST]
    return {
        "plan": (["plan", "resnet50", "--gpu", "v100-16gb", "--price", "2.5", *plan],
                 ["heat_map", "scatter", "table", "stack", "bars", "lanes"]),
        "plan-cpu": (["plan", "tiny_cpu.step.gz", "--gpu", "cpu.toml"], ["heat_map", "stack", "bars"]),
        "plan-several": (["plan", "resnet50", "--gpu", "4xa100-80gb,8xa10g,t4", "--price", "1.9,1.0,0.5", *plan],
                         ["table", "bars", "scatter", "heat_map", "stack"]),
        "predict": (["predict", "gpt2", "--gpu", "a100-40gb", "--precision", "amp-bf16", *HOST],
                    ["area", "table", "treemap", "stack", "bars", "scatter"]),
        "predict-no": (["predict", "resnet50", "--gpu", "t4", "--batch", "4096", *HOST], ["area", "table", "treemap"]),
        "predict-several": (["predict", "resnet50", "--gpu", "t4,v100-16gb,a10g", "--batch", "64"], ["table", "bars", "stack"]),
        "validate": (["validate", "training_rows.json", "--machine", "cpu.toml"], ["pairs", "table"]),
        "explain": (["explain", "training.pickle.gz"], ["area", "bars", "table", "lanes"]),
        "explain-oom": (["explain", "tight.pickle.gz"], ["area", "bars", "table", "lanes"]),
        "explain-expandable": (["explain", "expandable.pickle.gz"], ["area", "bars", "table", "lanes"]),
        "watch": (["explain", "run.watch"], ["area", "stack", "table"]),
        "study": (["study", "study.db"], ["table", "scatter", "pairs", "lines"]),
        "tune": (["tune", "tune.db"], ["table", "lines"]),
        "observation": (["observation", "run0.obs.jsonl", "run1.obs.jsonl"], ["area", "lines", "stack", "table"]),
        "evil": (["predict", evil.name, "--gpu", "t4", *HOST], ["area", "treemap"]),
    }


def write_page(binary: str, folder: pathlib.Path, name: str, command: list) -> pathlib.Path:
    page = folder / f"{name}.html"
    done = subprocess.run([binary, *command, "--html", str(page)], cwd=folder, capture_output=True, text=True, timeout=300, env=PYTHON)
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
    contrast, text = tab.run(FAINTEST)
    assert contrast >= LEAST_CONTRAST, f"{name}: {text!r} has a contrast of {contrast:.2f}"


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
    parser.add_argument("--only", help="pages whose names hold this")
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
                if arguments.only and arguments.only not in name:
                    continue
                page = write_page(binary, folder, name, command)
                check_page(tab, page, kinds, arguments.pictures)
                print(f"{name}: {page.stat().st_size / 1000:.0f} kB", flush=True)
        finally:
            tab.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
