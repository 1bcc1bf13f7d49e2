"""torch.distributed as the script finds it: it is rank 0 of as many processes as there are GPUs, and the others agree with it.

Wrappers for several GPUs pass calls on to the model; which one it was is a finding, and what it costs is forecast later.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing as standard
import os
import types

import torch
from torch.utils import _pytree as pytree

from .. import sites
from ..recording import names
from . import distributed_parts, modules

_SHARDED: set = set()  # ids of modules that fully_shard was called on


def install(world) -> None:
    if not torch.distributed.is_available():
        return
    gpus = world.request.gpu.count if world.on_gpu else 1
    if world.request.ranks:
        for name, value in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", gpus), ("LOCAL_WORLD_SIZE", gpus), ("GROUP_RANK", 0),
                            ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", 29500)):
            os.environ.setdefault(name, str(value))
    _wrappers(world, _process_group(world, gpus))
    _tensor_parallel(world)
    _synchronised_norm(world)
    _spawning(world)


class _Work:
    """A collective that is over."""

    def wait(self, *_):
        return True

    def is_completed(self):
        return True


def _process_group(world, gpus: int) -> types.SimpleNamespace:
    dist = torch.distributed
    state = types.SimpleNamespace(ready=False, size=gpus)

    def init_process_group(*args, world_size=-1, **kwargs):
        state.ready = True
        if "WORLD_SIZE" in os.environ:
            state.size = int(os.environ["WORLD_SIZE"])
        elif world_size and world_size > 0:
            state.size = world_size
        if state.size > 1:
            world.found("gpus", state.size, f"{state.size} processes", sites.here(2))

    def over(*args, async_op=False, **kwargs):
        return _Work() if async_op else None

    def gather_all(parts, tensor, *_, async_op=False, **__):
        for part in parts:
            if isinstance(part, torch.Tensor):
                part.copy_(tensor)
        return over(async_op=async_op)

    def gather_objects(objects, thing, *_, **__):
        objects[:] = [thing] * len(objects)

    def scatter_objects(outputs, inputs=None, *_, **__):
        if inputs:
            outputs[0] = inputs[0]

    def into_tensor(out, tensor, *_, async_op=False, **__):
        return over(async_op=async_op)

    answers = {
        "init_process_group": init_process_group, "destroy_process_group": lambda *_: None, "is_initialized": lambda: state.ready,
        "get_rank": lambda *_, **__: 0, "get_world_size": lambda *_, **__: state.size, "get_local_rank": lambda *_, **__: 0,
        "get_node_local_rank": lambda *_, **__: 0, "get_backend": lambda *_, **__: dist.Backend.NCCL, "get_group_rank": lambda *_, **__: 0,
        "get_global_rank": lambda *_, **__: 0, "new_group": lambda *_, **__: None, "new_subgroups": lambda *_, **__: (None, [None]),
        "barrier": over, "monitored_barrier": over, "all_reduce": over, "broadcast": over, "reduce": over, "send": over, "recv": over,
        "all_gather": gather_all, "gather": over, "scatter": over, "reduce_scatter": into_tensor, "all_to_all": over,
        "all_to_all_single": into_tensor, "isend": lambda *_, **__: _Work(), "irecv": lambda *_, **__: _Work(),
        "batch_isend_irecv": lambda *_, **__: [_Work()], "scatter_object_list": scatter_objects,
        "all_gather_into_tensor": into_tensor, "reduce_scatter_tensor": into_tensor, "broadcast_object_list": lambda *_, **__: None,
        "all_gather_object": gather_objects, "gather_object": lambda *_, **__: None,
        "is_torchelastic_launched": lambda: world.request.ranks,
        "is_nccl_available": lambda: True, "get_process_group_ranks": lambda *_: list(range(state.size))}
    _stores(dist)
    namespaces = [dist, dist.distributed_c10d]
    for name, answer in answers.items():
        for module in namespaces:
            if hasattr(module, name):
                setattr(module, name, answer)
    def init_device_mesh(device_type, mesh_shape=None, *, mesh_dim_names=None, **_):
        return _Mesh(state, mesh_shape, mesh_dim_names)

    dist.init_device_mesh = dist.device_mesh.init_device_mesh = init_device_mesh
    return state


def _stores(dist) -> None:
    """Ranks that are not there can neither be waited for nor be given options."""
    def store(*_, **__):
        return dist.HashStore()

    dist.TCPStore = store
    for module in (dist, dist.distributed_c10d):
        if not hasattr(module, "ProcessGroupNCCL"):
            module.ProcessGroupNCCL = types.SimpleNamespace(
                Options=lambda *_, **__: types.SimpleNamespace(is_high_priority_stream=False, config=types.SimpleNamespace()))


class _Mesh:
    """A device mesh of which this is the first device."""

    device_type = "cuda"

    def __init__(self, state, shape=None, names=None):
        self._state, self.shape, self.mesh_dim_names = state, tuple(shape or (state.size,)), tuple(names) if names else None
        self.ndim = len(self.shape)

    @property
    def mesh(self):
        return torch.arange(self.size()).view(self.shape)

    def size(self, mesh_dim=None):
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self):
        return 0

    def get_local_rank(self, *_):
        return 0

    def get_coordinate(self):
        return [0] * self.ndim

    def get_group(self, *_):
        return None

    def _flatten(self, *_, **__):
        return _Mesh(self._state, (self.size(),))

    def __getitem__(self, names):
        wanted = (names,) if isinstance(names, str) else tuple(names)
        known = dict(zip(self.mesh_dim_names or (), self.shape))
        return _Mesh(self._state, [known.get(name, self._state.size) for name in wanted], wanted)


def _tensor_parallel(world) -> None:
    """Shards of single weights: the model stays whole, and all of it is counted on one GPU."""
    try:
        from torch.distributed.tensor import parallel
    except ImportError:
        return

    def parallelize_module(module, *_, **__):
        world.note(f"{sites.here(2)}: tensor parallelism is not modelled: all of the model is counted on one GPU")
        return module

    parallel.parallelize_module = parallelize_module
    parallel.api.parallelize_module = parallelize_module
    parallel.loss_parallel = contextlib.nullcontext


class _Wrapper(torch.nn.Module):
    """Passes everything on to the model inside."""

    def __init__(self, module, *args, **kwargs):
        super().__init__()
        self.module = module
        self.device_ids, self.output_device, self.dim = kwargs.get("device_ids"), None, 0
        self.require_backward_grad_sync = self.require_forward_param_sync = self.broadcast_buffers = True
        self.find_unused_parameters, self.static_graph = kwargs.get("find_unused_parameters", False), kwargs.get("static_graph", False)
        self.process_group = self.reducer = self.logger = None
        self.device = next((p.device for p in module.parameters()), torch.device("cpu"))
        self.device_type = self.device.type

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        yield

    join = no_sync

    def register_comm_hook(self, *_):
        return None

    _set_static_graph = _register_comm_hook = register_comm_hook

    def _get_ddp_logging_data(self):
        return {}


def _wrappers(world, state) -> None:
    from torch.nn import parallel
    from torch.nn.parallel import data_parallel, distributed

    class DistributedDataParallel(_Wrapper):
        def __init__(self, module, *args, gradient_as_bucket_view=False, **kwargs):
            super().__init__(module, **kwargs)
            world.found("parallel", "ddp", "DistributedDataParallel", sites.here(2))
            if state.size < 2:  # torch/csrc/distributed/c10d/reducer.cpp asks for no number of processes
                world.found("ddp-buckets", True, "its buckets, though one process trains", sites.here(2))
            if gradient_as_bucket_view:
                world.found("bucket-view", True, "gradients are views of DDP's buckets", sites.here(2))

    class DataParallel(_Wrapper):
        def __init__(self, module, device_ids=None, *args, **kwargs):
            super().__init__(module)
            gpus = len(device_ids) if device_ids else world.request.gpu.count if world.on_gpu else 1
            if gpus > 1:
                world.found("parallel", "dp", "DataParallel", sites.here(2))
                world.found("gpus", gpus, f"{gpus} GPUs", sites.here(2))

    class FullyShardedDataParallel(_Wrapper):
        def __init__(self, module, process_group=None, sharding_strategy=None, *args, **kwargs):
            if kwargs.get("device_id") is not None and world.on_gpu:
                module.to("cuda")
            super().__init__(module)
            strategy = getattr(sharding_strategy, "name", "FULL_SHARD")
            world.found("parallel", _STRATEGIES.get(strategy, "fsdp"), f"FullyShardedDataParallel ({strategy})", sites.here(2))
            world.note(f"{sites.here(2)}: FSDP's flat parameters are forecast as those of fully_shard")
            if strategy.startswith(("HYBRID", "_HYBRID")):
                world.note(f"{sites.here(2)}: {strategy} holds a copy of the model in each node: say how many GPUs share one with "
                           "--fsdp-group")
            if strategy != "NO_SHARD":
                policy = kwargs.get("mixed_precision")
                half_precision(world, state, module, policy, sites.here(2))
                if getattr(kwargs.get("cpu_offload"), "offload_params", kwargs.get("cpu_offload")):
                    distributed_parts.offloaded(world, sites.here(2))

        def clip_grad_norm_(self, max_norm, *_, **__):
            return torch.nn.utils.clip_grad_norm_(self.parameters(), max_norm)

    distributed_parts.checkpoints(FullyShardedDataParallel)
    for cls in (DistributedDataParallel, DataParallel, FullyShardedDataParallel):
        names.TRANSPARENT.add(cls)
    parallel.DistributedDataParallel = distributed.DistributedDataParallel = DistributedDataParallel
    parallel.DataParallel = data_parallel.DataParallel = torch.nn.DataParallel = DataParallel
    try:
        from torch.distributed import fsdp
    except ImportError:
        return
    fsdp.FullyShardedDataParallel = FullyShardedDataParallel
    if hasattr(fsdp, "fully_shard"):
        _fully_shard(world, fsdp, state)


_STRATEGIES = {"FULL_SHARD": "fsdp", "SHARD_GRAD_OP": "fsdp-zero2", "NO_SHARD": "ddp", "HYBRID_SHARD": "fsdp",
               "_HYBRID_SHARD_ZERO2": "fsdp-zero2"}
_HALVES = (torch.bfloat16, torch.float16)


def half_precision(world, state, module, policy, site) -> None:
    """FSDP gathers and computes in half precision: the step is that of a model in it, and the forecast keeps shards and the
    optimizer's state in fp32. One GPU shares nothing, and is forecast as it is written."""
    dtype = getattr(policy, "param_dtype", None)
    if dtype not in _HALVES:
        return
    name = str(dtype).removeprefix("torch.")
    if state.size < 2:
        world.note(f"{site}: FSDP computes in {name}; on one GPU the step is that of the parameters' own type")
        return
    reduced = getattr(policy, "reduce_dtype", None) or dtype
    world.found("fsdp-mixed-precision", "reduce-half" if reduced in _HALVES else "reduce-fp32",
                f"FSDP in {name}, gradients reduced in {str(reduced).removeprefix('torch.')}", site)
    world.casts.append(lambda: _cast(module, policy))

    def inputs(_, args, kwargs):
        world.cast_weights()

        def cast(leaf):
            return leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

        return pytree.tree_map(cast, args), pytree.tree_map(cast, kwargs)

    module.register_forward_pre_hook(inputs, with_kwargs=True)


def _cast(module, policy) -> None:
    """The weights as they are gathered; until something trains, the script sees its own shards."""
    dtype = policy.param_dtype
    with torch.no_grad():
        for parameter in list(module.parameters()):
            if parameter.is_floating_point() and parameter.dtype is not dtype:
                modules.swap(parameter, torch.nn.Parameter(parameter.detach().to(dtype), requires_grad=parameter.requires_grad))
        if getattr(policy, "buffer_dtype", None) is not None:
            for part in module.modules():
                for name, buffer in part._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        part._buffers[name] = buffer.to(policy.buffer_dtype)


def _as_shards(module, mesh) -> None:
    """What scripts ask of a parameter that is a DTensor; it is whole here, and the forecast shards it."""
    from torch.distributed.tensor import Shard

    for parameter in module.parameters():
        for name, value in (("placements", (Shard(0),)), ("device_mesh", mesh)):
            setattr(parameter, name, value)
        for name in ("to_local", "full_tensor", "get_local_tensor"):
            setattr(parameter, name, lambda *_, parameter=parameter, **__: parameter.detach())


def _fully_shard(world, fsdp, state) -> None:
    class Sharded(type):
        def __instancecheck__(cls, instance):
            return id(instance) in _SHARDED

    class FSDPModule(metaclass=Sharded):
        """What a module is once fully_shard was called on it."""

    def nothing(*_, **__):
        return None

    def fully_shard(module, *args, mesh=None, reshard_after_forward=True, mp_policy=None, **kwargs):
        world.found("parallel", "fsdp" if reshard_after_forward is not False else "fsdp-zero2", "fully_shard", sites.here(2))
        for one in module if isinstance(module, (list, tuple)) else [module]:
            _SHARDED.add(id(one))
            half_precision(world, state, one, mp_policy, sites.here(2))
            if type(kwargs.get("offload_policy")).__name__ == "CPUOffloadPolicy":
                distributed_parts.offloaded(world, sites.here(2))
            _as_shards(one, mesh if mesh is not None else _Mesh(state))
            for name in ("set_modules_to_forward_prefetch", "set_modules_to_backward_prefetch", "set_requires_gradient_sync",
                         "set_is_last_backward", "set_reshard_after_backward", "reshard", "set_reduce_scatter_divide_factor"):
                object.__setattr__(one, name, nothing)
            object.__setattr__(one, "unshard", lambda *_, **__: world.cast_weights())
        return module

    fsdp.fully_shard, fsdp.FSDPModule = fully_shard, FSDPModule
    import torch.distributed.fsdp._fully_shard as inner

    inner.fully_shard, inner.FSDPModule = fully_shard, FSDPModule


def _synchronised_norm(world) -> None:
    """SyncBatchNorm exchanges a few sums of each channel; the step has the normalisation alone."""
    norm = torch.nn.SyncBatchNorm

    def forward(self, input):
        if self.training:
            world.note("SyncBatchNorm is taken for BatchNorm: what it sends between GPUs is not counted")
        return torch.nn.modules.batchnorm._BatchNorm.forward(self, input)

    norm.forward = forward


class _Inline:
    """A process whose function runs at once, in this one: PyTorch lets no backward run behind a fork."""

    started = False
    pid, exitcode, daemon, name, sentinel = 0, 0, False, "Process-1", 0

    def __init__(self, group=None, target=None, name=None, args=(), kwargs=None, *, daemon=None):
        self._call = (target, args, kwargs or {})

    def start(self):
        if not _Inline.started:
            _Inline.started = True
            target, args, kwargs = self._call
            if target is not None:
                target(*args, **kwargs)

    run = start

    def join(self, timeout=None):
        return None

    terminate = kill = close = join

    def is_alive(self):
        return False


def _spawning(world) -> None:
    """Processes of a job that starts its own ranks: this one is the first of them."""
    multiprocessing = torch.multiprocessing

    def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
        return fn(0, *args)

    context = standard.get_context("fork")  # a process that starts afresh would know nothing of all this
    process = context.Process
    start = process.start

    def noted(self):
        if sites.here(2).line:
            world.outcome.starts_processes = True
        return start(self)

    process.start = noted
    for name in ("SpawnProcess", "ForkServerProcess"):
        kind = getattr(standard.context, name, None)
        if kind is not None:
            kind._Popen, kind.start = staticmethod(process._Popen), noted
    for name in ("SpawnContext", "ForkServerContext"):
        if world.request.inline and hasattr(standard.context, name):
            getattr(standard.context, name).Process = _Inline
    for module in (standard, multiprocessing):
        module.set_start_method = lambda *_, **__: None
        module.get_context = lambda *_, **__: context
        module.Process = _Inline if world.request.inline else process
    if world.request.inline:
        context.Process = _Inline
    multiprocessing.spawn = spawn
    multiprocessing.start_processes = lambda fn, args=(), nprocs=1, **_: fn(0, *args)
