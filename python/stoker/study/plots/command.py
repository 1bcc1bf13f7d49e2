"""python -m stoker study-plots FOLDER png|svg: draws what FOLDER/study.json tells, and says what was drawn and what was not."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import warnings

from ...arguments import Parser
from ...errors import CaptureError
from . import convergence, effects, forecast, front, scaling, style

MOST_METRICS = 12
BACKEND = "matplotlib"


def figure_class():
    """matplotlib's Figure, without a window; without matplotlib a sentence that says what to do."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CaptureError(
            f"pictures need {BACKEND}, and {sys.executable} has none ({error}): install it with "
            f"\"{sys.executable} -m pip install {BACKEND}\", or name an interpreter that has it in STOKER_PYTHON; "
            "study.json, with all that would be drawn, is written") from error
    matplotlib.rcdefaults()  # a user's own style may hide text or ask for LaTeX
    matplotlib.rcParams["svg.hashsalt"] = "stoker"
    warnings.simplefilter("ignore")  # glyphs that a font lacks
    return Figure


def pictures(study: dict, figure):
    """(name, what it shows, picture or why there is none) of everything that could be drawn."""
    findings = study["findings"]
    goals = {best["figure"]: best["goal"] for best in findings["best"]}
    for one in findings["metrics"][:MOST_METRICS]:
        goal = goals.get(one["metric"])
        more = None if goal is None else goal == "max"
        yield f"effects-{one['metric']}", "what each axis does, with intervals", effects.draw(figure, one, more)
    if not findings["metrics"]:
        yield "effects", "what each axis does", "no two trials that are done differ in one axis alone"
    yield "pareto", "settings that no other beats", front.draw(figure, study, goals) or "fewer than two settings have a time and a metric"
    yield "scaling", "scaling, and the next bottleneck", scaling.draw(figure, study) or (
        "needs samples_per_s at three numbers of workers, threads, cores, GPUs, nodes or batch")
    for one in findings["convergence"]:
        yield f"convergence-{one['metric']}", "curves at equal time", convergence.draw(figure, study, one)
    if not findings["convergence"]:
        yield "convergence", "curves at equal time", "no two settings reported a metric on their way (stoker.report)"
    yield "forecast", "forecast beside fact", forecast.draw(figure, study) or "no trial that is done has a forecast (stoker sweep --model)"


def save(picture, path: pathlib.Path, kind: str) -> None:
    """Under another name first: an old picture stays whole where the disk is full."""
    draft = path.with_name(path.name + ".tmp")
    try:
        picture.savefig(draft, format=kind, dpi=144, metadata={"Date": None} if kind == "svg" else None)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def run(arguments: list) -> int:
    """study-plots FOLDER FORMAT: draws what FOLDER/study.json tells."""
    parser = Parser(prog="stoker study-plots", description="What `stoker study --plots` asks: pictures of the findings in a folder.")
    parser.add_argument("folder", help="folder with study.json, for the pictures")
    parser.add_argument("format", choices=("png", "svg"), help="of the pictures")
    asked = parser.parse_args(arguments)
    folder, kind = pathlib.Path(asked.folder), asked.format
    study = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    drawn, missing = [], []
    try:
        for name, words, picture in pictures(study, figure_class()):
            if isinstance(picture, str):
                missing.append((name, picture))
                continue
            file = folder / f"{style.file_name(name)}.{kind}"
            save(picture, file, kind)
            drawn.append((str(file), words))
    except OSError as error:
        raise CaptureError(f"{error.filename or folder} cannot be written: {error.strerror}; name another folder with --plots") from error
    width = max((len(path) for path, _ in drawn), default=0)
    for path, words in drawn:
        print(f"{path:{width}}  {words}")
    for name, why in missing:
        print(f"no picture of {name}: {why}")
    return 0 if drawn else 1
