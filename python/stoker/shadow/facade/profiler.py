"""torch.profiler as the script finds it: it watches nothing, since what runs here is no step of a GPU, and writes no trace."""

from __future__ import annotations

import torch

from .. import sites


class _Averages(list):
    """What key_averages() gives: no rows."""

    self_cpu_time_total = 0

    def table(self, *_, **__):
        return ""

    def total_average(self):
        return self


class Profile:
    """A profiler that is never warm."""

    step_num = 0
    profiler = None

    def __init__(self, *_, **__):
        Profile.world.note(f"{sites.here(2)}: the script's profiler is switched off; a step is forecast without what it costs")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def _nothing(self, *_, **__):
        return None

    start = stop = step = export_chrome_trace = export_stacks = export_memory_timeline = add_metadata = add_metadata_json = _nothing
    preset_metadata_json = toggle_collection_dynamic = prepare_trace = start_trace = stop_trace = _nothing

    def key_averages(self, *_, **__):
        return _Averages()

    def events(self):
        return []

    def table(self, *_, **__):
        return ""


def install(world) -> None:
    Profile.world = world
    torch.profiler.profile = torch.profiler.profiler.profile = Profile
    torch.autograd.profiler.profile = Profile
    torch.profiler.tensorboard_trace_handler = torch.profiler.profiler.tensorboard_trace_handler = lambda *_, **__: None
