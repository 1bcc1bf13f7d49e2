"""Libraries that run the loop in ways which no forecast knows: refused where they begin, with the way out. Horovod is followed.

An installed one is changed once it is imported; an absent one is stood in for until then, so that a script which only imports
it can be captured.
"""

from __future__ import annotations

import types

import torch

from .. import sites
from .silent import Silent

_ZERO = "ask for its ZeRO by --parallel zero2 (or zero3) and --gpus N"
_WAYS = {
    "deepspeed": ("DeepSpeed's engine", f"run the script without it, by its switch if it has one, and {_ZERO}"),
    "fairscale": ("FairScale", f"use torch.distributed.fsdp in its place, or run the script without it and {_ZERO}"),
    "colossalai": ("Colossal-AI", f"run the script without it, and {_ZERO}"),
    "torch.distributed.pipelining": ("pipeline parallelism", "capture the whole model on one GPU, without stages"),
    "torch.distributed.rpc": ("training by remote calls (RPC)", "capture the loop of one process"),
}
# Module -> names in it that begin what is not modelled.
_BEGIN = {"deepspeed": ("initialize", "PipelineModule"), "deepspeed.pipe": ("PipelineModule",),
          "fairscale.nn": ("FullyShardedDataParallel", "ShardedDataParallel", "Pipe", "auto_wrap", "wrap"),
          "fairscale.nn.data_parallel": ("FullyShardedDataParallel", "ShardedDataParallel"), "fairscale.optim": ("OSS", "AdaScale"),
          "fairscale.optim.oss": ("OSS",), "colossalai": ("launch", "launch_from_torch", "initialize"), "colossalai.booster": ("Booster",),
          "torch.distributed.pipelining": ("pipeline", "PipelineStage"), "torch.distributed.rpc": ("init_rpc",)}
ABSENT = {"deepspeed", "fairscale", "colossalai", "horovod"}


def hooks(world) -> dict:
    """What is done to those that are installed."""
    def change(module, name):
        for key, value in attributes(world, name).items():
            if hasattr(module, key):
                setattr(module, key, value)

    return {name: lambda m, name=name: change(m, name) for name in (*_BEGIN, "horovod.torch")}


def attributes(world, name: str) -> dict:
    """Names of a module that do something else than nothing."""
    if name == "horovod.torch":
        return _horovod(world)
    known = next((way for way in _WAYS if name == way or name.startswith(way + ".")), None)
    return {begins: _refusing(world, *_WAYS[known]) for begins in _BEGIN.get(name, ())} if known else {}


def _refusing(world, what: str, way: str):
    def refuse(*args, **kwargs):
        world.refuse(f"{sites.here(2)}: {what} is not modelled: {way}")

    return refuse


def _horovod(world) -> dict:
    """horovod.torch: this process is the first of as many as there are GPUs, whose gradients are averaged as by
    DistributedDataParallel."""
    gpus = world.request.gpu.count if world.on_gpu else 1

    def optimizer(given, named_parameters=None, compression=None, backward_passes_per_step=1, *args, **kwargs):
        if gpus > 1:
            site = sites.here(2)
            world.found("parallel", "ddp", "Horovod", site)
            world.found("gpus", gpus, f"{gpus} processes", site)
            world.note(f"{site}: Horovod is forecast as DistributedDataParallel; its fusion buffer is not counted")
        for name in ("synchronize", "set_backward_passes_per_step"):
            setattr(given, name, lambda *_: None)
        given.skip_synchronize = lambda: Silent("skip_synchronize")
        return given

    def same(value, *args, **kwargs):
        return value

    def gathered(tensor, *args, **kwargs):
        return torch.cat([tensor] * gpus)

    def nothing(*args, **kwargs):
        return None

    compression = types.SimpleNamespace(none=None, fp16=None)
    number = {"rank": 0, "local_rank": 0, "cross_rank": 0, "size": gpus, "local_size": gpus, "cross_size": 1}
    return {**{name: lambda value=value: value for name, value in number.items()}, "init": nothing, "shutdown": nothing,
            "is_initialized": lambda: True, "DistributedOptimizer": optimizer, "broadcast_parameters": nothing,
            "broadcast_optimizer_state": nothing, "broadcast_object": same, "allreduce": same, "allreduce_": same, "broadcast": same,
            "broadcast_": same, "allgather": gathered, "allgather_object": lambda value, *_, **__: [value] * gpus, "join": lambda *_: 0,
            "allreduce_async": same, "allreduce_async_": same, "synchronize": same, "poll": lambda *_: True, "barrier": nothing,
            "Compression": compression, "nccl_built": lambda: 1, "mpi_threads_supported": lambda: False, "mpi_built": lambda: False,
            "gloo_built": lambda: True, "cuda_built": lambda: True, "SyncBatchNorm": torch.nn.BatchNorm2d,
            "Average": "average", "Sum": "sum", "Adasum": "adasum", "elastic": types.SimpleNamespace(
                run=lambda function: function, TorchState=Silent("TorchState"))}
