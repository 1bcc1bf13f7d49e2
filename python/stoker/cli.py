"""python -m stoker VERB ARGUMENTS: the verbs whose work is Python's. Any other verb goes to the binary, which passes these on."""

from __future__ import annotations

import os
import signal
import sys
import traceback

from . import imports
from .errors import EXIT_BUG, CaptureError, InternalError, UserCodeError
from .plain import printable_lines

EXIT_BAD_INPUT = 3
INTERRUPTED = 130  # 128 + SIGINT


def _capture(arguments: list) -> int:
    from .shadow import command as script

    if script.is_script(arguments):
        return script.run(arguments)
    from . import capture_command

    return capture_command.run(arguments)


def _probe(arguments: list) -> int:
    from .pipeline import command

    if not command.is_for_python(arguments):
        return _binary(["probe", *arguments])
    return command.probe(arguments)


def _observation(arguments: list) -> int:
    from .observe import cli as observation

    return observation.main(arguments)


def _calibrate_runs(arguments: list) -> int:
    from . import calibrate

    return calibrate.run(arguments)


def _loader_runs(arguments: list) -> int:
    from . import loader_runs

    return loader_runs.run(arguments)


def _training_runs(arguments: list) -> int:
    from . import training_runs

    return training_runs.run(arguments)


def _tune_sample(arguments: list) -> int:
    from .tune import sampling

    return sampling.run(arguments)


def _validate_script(arguments: list) -> int:
    from .shadow import validate_command

    return validate_command.run(arguments)


def _vocab(arguments: list) -> int:
    from .tune import vocab_command

    return vocab_command.run(arguments)


def _study_plots(arguments: list) -> int:
    from .study.plots import command

    return command.run(arguments)


VERBS = {"capture": _capture, "probe": _probe, "observation": _observation, "calibrate-runs": _calibrate_runs,
         "loader-runs": _loader_runs, "training-runs": _training_runs, "tune-sample": _tune_sample,
         "study-plots": _study_plots, "validate-script": _validate_script, "vocab": _vocab}
# Until they have imported PyTorch and catch Ctrl-C themselves it ends them: an exception within that import may be lost.
MEASURING = ("calibrate-runs", "loader-runs", "training-runs")


def main(arguments: list | None = None) -> int:
    """Runs one verb; its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    verb = arguments[0] if arguments else ""
    try:
        if verb in MEASURING:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        return VERBS[verb](arguments[1:]) if verb in VERBS else _binary(arguments)
    except InternalError as error:
        _say(f"{error.traceback_text.rstrip()}\nstoker: {error}\n")
        return EXIT_BUG
    except UserCodeError as error:
        _say(f"{error.traceback_text.rstrip()}\nstoker: {error}\n")
    except CaptureError as error:
        _say(f"stoker: {error}\n")
    except KeyboardInterrupt:
        sys.stderr.write("stoker: interrupted; nothing was written\n")
        return INTERRUPTED
    except Exception:
        _say(traceback.format_exc())
        sys.stderr.write(f"stoker: this is a bug in stoker's {verb}; please report it with the lines above\n")
        return EXIT_BUG
    return EXIT_BAD_INPUT


def run() -> int:
    """The command line of a process of its own."""
    imports.install()
    code = main()
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    for sentence in imports.passed_over() if "--quiet" not in own else ():
        _say(f"stoker: note: {sentence}\n")
    return code


def _say(text: str) -> None:
    sys.stderr.write(printable_lines(text))


def _binary(arguments: list) -> int:
    from .binary import StokerError, find_binary

    try:
        os.environ.setdefault("STOKER_PYTHON", sys.executable)  # captures on the fly use this interpreter
        os.execv(find_binary(), ["stoker", *arguments])
    except StokerError as error:
        _say(f"stoker: {error}\n")
        return error.exit_code
