"""The command: fits the loader profile that Stoker ships, or validates it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import sys

import numpy as np
import PIL
import PIL.features
import torch
import torchvision

from ...measure import machine
from . import transport as costs
from . import validation
from .images import IMAGE_SIZE, images_in, say
from .stages import errors_of, fit_stages, paired

DESCRIPTION = """Measures PyTorch's DataLoader with Pillow and torchvision on this machine.

    measure-loader fit DIR --tool TOOL -o data/coefficients/input.json [--check OTHER_DIR]
    measure-loader validate DIR --tool TOOL --profile data/coefficients/input.json [--json FILE]

`fit` relates the stage costs that `stoker probe` measures in C++ to those of Pillow and torchvision on the
same pictures, and measures what a DataLoader spends on moving batches; the result is the loader profile
that Stoker ships. `validate` runs real DataLoaders and sets them beside the simulation.
Both are for developers: they need torch, torchvision, numpy and the built stoker-loader-tool, on Linux. All costs
are CPU times where that is possible, the best of interleaved repetitions where it is not.
"""


def fit(args):
    say("stages: C++ and Python in alternation")
    x, y, megapixels, probe = paired(args.folder, args.tool, args.repetitions, 20)
    held_out = np.arange(len(megapixels)) % 4 == 0
    checked = fit_stages(x[~held_out], y[~held_out], megapixels[~held_out])
    unseen = errors_of(checked, x[held_out], y[held_out], megapixels[held_out])
    stages = fit_stages(x, y, megapixels)
    say(f"held out: {unseen}")
    say(f"all: {errors_of(stages, x, y, megapixels)}")
    checks = []
    for folder in args.check:
        found = errors_of(stages, *paired(folder, args.tool, args.repetitions, 20)[:3])
        say(f"{folder}: {found}")
        checks.append({"name": pathlib.Path(folder).name, **found})
    say("transport: real DataLoaders")
    transport, transport_error = costs.fit_transport(args.repetitions)
    transport["collate_private_ns_per_byte"] = costs.fit_private_collate(args.repetitions)
    transport.update(costs.fit_processes(images_in(args.folder), 4 * args.repetitions))
    transport.update(costs.fit_samples(images_in(args.folder), float(y.sum(axis=1).mean()), transport, args.repetitions))
    transport["worker_private_mb"] = costs.worker_private_mb(images_in(args.folder))
    today = datetime.date.today().isoformat()
    versions = {"python": sys.version.split()[0], "torch": torch.__version__, "torchvision": torchvision.__version__,
                "pillow": PIL.__version__, "pillow_libjpeg_turbo": PIL.features.version("libjpeg_turbo")}
    last = [probe["stage_ms"][s]["mean"] for s in ("to_tensor", "normalize")]
    profile = {
        "format": "stoker-loader-profile", "schema_version": [1, 0],
        "basis": f"Pillow {PIL.__version__} and torchvision {torchvision.__version__.split('+')[0]}, measured {today} "
                 f"on {machine.cpu_name()}",
        "provenance": {"script": "scripts/measure-loader fit", "date": today, "cpu_model": machine.cpu_name(),
                       "cores": machine.whole_cores(), **versions, "pictures": len(megapixels),
                       "picture_source": "Debian opencv-doc", "load_average": round(os.getloadavg()[0], 2)},
        "native_ns_per_output_pixel": round(1e6 * sum(last) / IMAGE_SIZE ** 2, 5),
        "stages": stages, "held_out_mape_percent": unseen["mape_percent"], "held_out": unseen, "checked_on": checks,
        "transport": {k: round(v, 6) for k, v in transport.items()},
        "transport_receive_mape_percent": round(transport_error, 2)}
    pathlib.Path(args.output).write_text(json.dumps(profile, indent=1) + "\n")
    say(json.dumps(profile, indent=1))


def main():
    parser = argparse.ArgumentParser(description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    fitting = verbs.add_parser("fit", help="write a loader profile")
    fitting.add_argument("folder", help="folder of JPEG files")
    fitting.add_argument("-o", "--output", required=True)
    fitting.add_argument("--check", action="append", default=[], help="further pictures, for the error only")
    fitting.add_argument("--repetitions", type=int, default=3)
    fitting.set_defaults(run=fit)
    validating = verbs.add_parser("validate", help="real DataLoaders beside the simulation")
    validating.add_argument("folder")
    validating.add_argument("--profile", required=True)
    validating.add_argument("--samples", type=int, default=1280)
    validating.add_argument("--repetitions", type=int, default=3)
    validating.add_argument("--json")
    validating.set_defaults(run=validation.validate)
    for each in (fitting, validating):
        each.add_argument("--tool", required=True, help="the built stoker-loader-tool")
    args = parser.parse_args()
    args.run(args)
