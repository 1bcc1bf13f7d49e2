"""What torch.cuda answers in a capture to code that asks for streams, events and the GPU: a device that waits for nothing."""

from __future__ import annotations

import types


class Stream:
    """A stream on which nothing runs."""

    def __init__(self, device=None, priority=0, **_):
        import torch

        self.device = torch.device("cuda", 0)
        self.stream_id = self.cuda_stream = 0
        self.priority = priority

    @staticmethod
    def priority_range() -> tuple:
        return 0, -1

    def query(self):
        return True

    def synchronize(self):
        return None

    wait_stream = wait_event = record_event = lambda self, *_: Event()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Event:
    """An event that has happened already."""

    def __init__(self, *_, **__):
        import torch

        self.device = torch.device("cuda", 0)
        self.cuda_event = 0

    def record(self, *_):
        return None

    wait = synchronize = record

    def query(self):
        return True

    def elapsed_time(self, other) -> float:
        return 1.0  # milliseconds


class StreamContext(Stream):
    def __init__(self, stream=None):
        super().__init__()


# The GPU is chosen after the capture; code that asks in its forward is told of an A100, whose kernels are the usual ones.
_PROPERTIES = types.SimpleNamespace(name="NVIDIA A100-SXM4-80GB", major=8, minor=0, total_memory=85_174_583_296,
                                    multi_processor_count=108, warp_size=32, is_integrated=False)


def install(torch) -> None:
    """Puts these answers in the place of torch.cuda's, which would ask a driver."""
    cuda = torch.cuda

    def always(value):
        return lambda *args, **kwargs: value

    answers = {"current_device": 0, "get_device_name": _PROPERTIES.name, "get_device_properties": _PROPERTIES,
               "get_device_capability": (8, 0), "mem_get_info": (_PROPERTIES.total_memory, _PROPERTIES.total_memory),
               "synchronize": None, "set_device": None, "empty_cache": None, "_exchange_device": 0, "_maybe_exchange_device": 0,
               "is_current_stream_capturing": False, "set_stream": None, "reset_peak_memory_stats": None}
    for name, value in answers.items():
        setattr(cuda, name, always(value))
    for name in ("current_stream", "default_stream"):
        setattr(cuda, name, lambda *args, **kwargs: Stream())
    cuda.stream, cuda.Stream, cuda.Event, cuda.StreamContext = StreamContext, Stream, Event, StreamContext
    torch.Tensor.record_stream = always(None)
