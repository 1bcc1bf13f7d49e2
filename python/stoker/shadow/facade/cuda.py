"""torch.cuda and torch.accelerator as the script finds them: the GPU that was asked for, and nothing behind it."""

from __future__ import annotations

import collections
import contextlib
import os
import types

import torch
from torch.utils._device import DeviceContext

from ...cuda_surface import Event, Stream, StreamContext
from .. import sites
from . import allocator, nvidia
from .silent import Silent

_DEVICE = torch.device("cuda", 0)
_CUDNN, _NCCL = 90_100, (2, 21, 5)  # that PyTorch 2.5 and 2.6 bring with them for CUDA 12.4


class Generator(torch._C.Generator):
    """A generator of any device; random numbers of a fake device come from nowhere."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, "cpu")


def _nothing(*_, **__):
    return None


def _zero(*_, **__):
    return 0


def _alone(function):
    """A function of its own that does the same: Dynamo tells functions apart by what they are."""
    return lambda *args, **kwargs: function(*args, **kwargs)


# Functions that make a tensor of Python's numbers: they copy to the device beneath all modes.
FROM_DATA = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor, torch.Tensor.new)


def from_data(func, args, kwargs):
    """Makes the tensor by way of the host, where the tensor is to be on the GPU; None where it is not."""
    device = kwargs.get("device")
    if func is torch.Tensor.new:
        return _new(*args) if args[0].device.type == "cuda" and not kwargs else None
    if func is torch.Tensor.new_tensor:
        device = args[0].device if device is None else device
    if device is None or torch.device(device).type != "cuda" or isinstance(args[0] if args else None, torch.Tensor) \
            and func is not torch.Tensor.new_tensor:
        return None
    plain = {k: v for k, v in kwargs.items() if k not in ("requires_grad", "pin_memory")} | {"device": "cpu"}
    if func is torch.Tensor.new_tensor:
        plain.setdefault("dtype", args[0].dtype)
        made = torch.tensor(args[1], **plain).to(_DEVICE)
    else:
        made = func(*args, **plain).to(_DEVICE)
    return made.requires_grad_() if kwargs.get("requires_grad") else made


def _default_device() -> None:
    """The mode of `torch.set_default_device` and of `with torch.device(...)`, which lies beneath that of a capture."""
    original = DeviceContext.__torch_function__

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = None
        if func in (torch.tensor, torch.as_tensor, torch.asarray) and (kwargs or {}).get("device") is None:
            made = from_data(func, args, {**(kwargs or {}), "device": self.device})
        return original(self, func, types, args, kwargs) if made is None else made

    DeviceContext.__torch_function__ = __torch_function__


def _new(like, *args):
    """`tensor.new(...)` of sizes or of data, as PyTorch had it before new_tensor and new_empty."""
    if len(args) == 1 and not isinstance(args[0], (int, torch.Size)):
        return torch.as_tensor(args[0]).to(_DEVICE, like.dtype)
    sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args or (0,)
    return torch.empty(tuple(sizes), dtype=like.dtype, device=_DEVICE)


INDEXED = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


def with_index_tensors(args):
    """The arguments of an index on the device, lists of numbers in it as tensors of the host: PyTorch would copy them beneath all
    modes."""
    if not isinstance(args[0], torch.Tensor) or args[0].device.type != "cuda":
        return args

    def tensor(part):
        if isinstance(part, (list, range)) and len(part) and not any(isinstance(p, (torch.Tensor, slice)) or p is None or p is Ellipsis
                                                                    for p in part):
            return torch.tensor(list(part))
        if type(part).__module__ == "numpy" and getattr(part, "ndim", 0):
            return torch.as_tensor(part)
        return part

    index = args[1]
    return (args[0], tuple(map(tensor, index)) if isinstance(index, tuple) else tensor(index), *args[2:])


class _Typed(type):
    """The class of torch.cuda.FloatTensor and its like: calling one makes a tensor on the device."""

    def __call__(cls, *args, **kwargs):
        return getattr(torch, cls.__name__)(*args).to(_DEVICE)

    def __instancecheck__(cls, instance):
        return isinstance(instance, torch.Tensor) and instance.device.type == "cuda" and instance.dtype is cls.dtype


def _typed(name: str, dtype):
    return _Typed(name, (), {"dtype": dtype, "__module__": "torch.cuda"})


_TYPES = {"FloatTensor": torch.float32, "HalfTensor": torch.float16, "BFloat16Tensor": torch.bfloat16, "DoubleTensor": torch.float64,
          "LongTensor": torch.int64, "IntTensor": torch.int32, "ShortTensor": torch.int16, "CharTensor": torch.int8,
          "ByteTensor": torch.uint8, "BoolTensor": torch.bool}


def _statistics() -> dict:
    """Counters as torch.cuda.memory_stats has them, all of them 0, whatever their names."""
    parts = [f"{what}{pool}.{when}" for what in ("allocated_bytes.", "reserved_bytes.", "active_bytes.", "inactive_split_bytes.",
                                                 "requested_bytes.", "allocation.", "segment.", "active.", "inactive_split.")
             for pool in ("all", "large_pool", "small_pool") for when in ("current", "peak", "allocated", "freed")]
    return collections.defaultdict(int, dict.fromkeys((*parts, "num_alloc_retries", "num_ooms", "num_device_alloc"), 0))


def _runtime():
    """torch.cuda.cudart(): functions of CUDA's runtime, all of which succeed."""
    return Silent("cudart", cudaMemGetInfo=lambda *_: torch.cuda.mem_get_info(), cudaProfilerStart=_zero, cudaProfilerStop=_zero,
                  cudaHostRegister=_zero, cudaHostUnregister=_zero, cudaDeviceSynchronize=_zero, cudaGetErrorString=lambda *_: "no error",
                  cudaError=types.SimpleNamespace(success=0))


def _other_allocator(world) -> None:
    world.note(f"{sites.here(3)}: the script brings an allocator of its own; memory is forecast with PyTorch's")


def _old_types() -> None:
    """torch.cuda.FloatTensor, and `tensor.type(torch.cuda.FloatTensor)` or its name."""
    for name, dtype in _TYPES.items():
        setattr(torch.cuda, name, _typed(name, dtype))
    original = torch.Tensor.type

    def type_(self, dtype=None, *args, **kwargs):
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            dtype = getattr(torch.cuda, dtype.rpartition(".")[2], dtype)
        if isinstance(dtype, _Typed):
            return self.to(_DEVICE, dtype.dtype)
        if dtype is None and self.device.type == "cuda":
            return "torch.cuda." + next((name for name, one in _TYPES.items() if one is self.dtype), "Tensor")
        return original(self, *(() if dtype is None else (dtype,)), *args, **kwargs)

    torch.Tensor.type = type_
    set_type = torch.set_default_tensor_type

    def set_default_tensor_type(t):
        if isinstance(t, str) and t.startswith("torch.cuda."):
            t = getattr(torch.cuda, t.rpartition(".")[2], t)
        if not isinstance(t, _Typed):
            return set_type(t)
        torch.set_default_dtype(t.dtype)
        _tensors_there()
        return torch.set_default_device("cuda")

    torch.set_default_tensor_type = set_default_tensor_type


def _tensors_there() -> None:
    """`torch.Tensor(data)` follows the default tensor type, where a default device leaves it on the host."""
    original = torch.Tensor.__new__

    def made(cls, *args, **kwargs):
        out = original(cls, *args, **kwargs)
        return out.to(_DEVICE) if cls is torch.Tensor and "device" not in kwargs else out

    torch.Tensor.__new__ = made


def _seen(count: int) -> int:
    """How many of the GPUs CUDA_VISIBLE_DEVICES leaves, which the script may set before it asks."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return count
    names = listed.split(",")
    first_bad = next((i for i, name in enumerate(names) if name.strip() in ("", "-1", "NoDevFiles")), len(names))
    return min(count, first_bad)


def install(world) -> None:
    """Puts the GPU of the request in place; for a CPU says that there is none."""
    if not world.on_gpu:
        torch.cuda.is_available = lambda: False
        torch.cuda.device_count = lambda: 0
        if hasattr(torch, "accelerator"):
            torch.accelerator.is_available = lambda *_, **__: False
            torch.accelerator.current_accelerator = lambda *_, **__: None
        return
    gpu, cuda = world.request.gpu, torch.cuda
    allocator.install(world)
    properties = types.SimpleNamespace(
        name=gpu.name, major=gpu.capability[0], minor=gpu.capability[1], total_memory=gpu.memory,
        multi_processor_count=gpu.processors, warp_size=32, is_integrated=False, is_multi_gpu_board=False,
        max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, gcnArchName="", L2_cache_size=40 << 20,
        shared_memory_per_block=49152, uuid="GPU-0", clock_rate=1_410_000, memory_clock_rate=1_215_000, memory_bus_width=5120,
        max_threads_per_block=1024, shared_memory_per_block_optin=166912, shared_memory_per_multiprocessor=167936, pci_bus_id=0,
        pci_device_id=0, pci_domain_id=0)

    def always(value):
        return lambda *_, **__: value

    def visible():
        return bool(_seen(gpu.count))

    def counted():
        if world.counted_gpus is None and sites.here().line:
            world.counted_gpus = sites.here()
        return _seen(gpu.count)

    def set_device(device=None):
        index = device if isinstance(device, int) else torch.device(device).index if device is not None else 0
        if index is not None and index >= gpu.count:
            world.refuse(f"{sites.here()}: uses cuda:{index}, and there {'are' if gpu.count > 1 else 'is'} {gpu.count} of them: give "
                         f"--gpus {index + 1}")

    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # of the machine that captures
    answers = {
        "is_available": visible, "device_count": counted, "current_device": always(0),
        "is_initialized": always(True),
        "get_device_name": always(gpu.name), "get_device_properties": always(properties),
        "get_device_capability": always(gpu.capability), "get_arch_list": always([f"sm_{gpu.capability[0]}{gpu.capability[1]}"]),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or gpu.capability >= (8, 0),
        "mem_get_info": always((gpu.memory, gpu.memory)), "is_current_stream_capturing": always(False), "utilization": _zero,
        "memory_stats": lambda *_, **__: _statistics(), "memory_stats_as_nested_dict": lambda *_, **__: {},
        "host_memory_stats": lambda *_, **__: _statistics(), "get_allocator_backend": always("native"), "cudart": _runtime,
        "is_tf32_supported": always(gpu.capability >= (8, 0)), "get_sync_debug_mode": _zero,
        "get_per_process_memory_fraction": always(1.0), "get_gencode_flags": always(""), "memory_usage": _zero,
        "device_memory_used": _zero, "caching_allocator_alloc": _zero,
        "CUDAPluggableAllocator": Silent, "change_current_allocator": lambda *_: _other_allocator(world), "MemPool": Silent,
        "use_mem_pool": lambda *_, **__: contextlib.nullcontext(), "_set_allocator_settings": allocator.settings(world),
        "set_per_process_memory_fraction": allocator.fraction(world),
        "memory_summary": always("memory statistics of a GPU that is not there\n"), "memory_snapshot": lambda *_, **__: [],
        "list_gpu_processes": always(""), "_record_memory_history": _nothing, "_dump_snapshot": _nothing,
        "_snapshot": lambda *_, **__: {"segments": [], "device_traces": []},
        "get_rng_state": lambda *_, **__: torch.get_rng_state(), "get_rng_state_all": lambda: [torch.get_rng_state()],
        "initial_seed": always(0), "can_device_access_peer": always(True), "current_stream": lambda *_, **__: Stream(),
        "default_stream": lambda *_, **__: Stream(), "stream": StreamContext, "Stream": Stream, "Event": Event, "ExternalStream": Stream,
        "StreamContext": StreamContext,
        "current_blas_handle": _zero}
    for name in ("set_device", "synchronize", "manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache", "init", "set_stream",
                 "_lazy_init", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached", "ipc_collect",
                 "set_rng_state", "set_rng_state_all", "set_sync_debug_mode", "_lazy_call", "reset_accumulated_memory_stats",
                 "reset_peak_host_memory_stats", "reset_accumulated_host_memory_stats", "caching_allocator_delete",
                 "caching_allocator_enable", "check_error"):
        answers[name] = _alone(_nothing)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
                 "max_memory_cached", "temperature", "power_draw", "clock_rate"):
        answers[name] = _alone(_zero)
    for module in (cuda, cuda.memory, cuda.random, cuda.streams, cuda.profiler):
        for name, answer in answers.items():
            if hasattr(module, name) or module is cuda:
                setattr(module, name, answer)
    cuda.set_device = set_device
    _old_types()
    _default_device()
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(cuda.nvtx, name, _zero)
    cuda.nvtx.range = lambda *_, **__: contextlib.nullcontext()
    torch.Stream, torch.Event, torch.Generator = Stream, Event, Generator
    cuda.default_generators = tuple(Generator() for _ in range(gpu.count))
    cuda.amp.common.amp_definitely_not_available = lambda: False
    _accelerator(gpu, counted)
    _bindings()
    _flags(world)


def _accelerator(gpu, counted) -> None:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    for name, answer in {"is_available": lambda *_, **__: True, "current_accelerator": lambda *_, **__: torch.device("cuda"),
                         "device_count": counted, "current_device_index": _zero, "current_device_idx": _zero,
                         "set_device_index": _nothing, "set_device_idx": _nothing, "synchronize": _nothing,
                         "current_stream": lambda *_, **__: Stream(), "set_stream": _nothing, "empty_cache": _nothing,
                         "memory_allocated": _zero, "max_memory_allocated": _zero, "memory_reserved": _zero,
                         "max_memory_reserved": _zero, "reset_peak_memory_stats": _nothing,
                         "memory_stats": lambda *_: _statistics(), "get_memory_info": lambda *_: (gpu.memory, gpu.memory),
                         "reset_accumulated_memory_stats": _nothing}.items():
        setattr(accelerator, name, _alone(answer))


def _bindings() -> None:
    """Functions of torch._C that only a CUDA build has, or that ask the driver."""
    for name in ("_cuda_clearCublasWorkspaces", "_cuda_setDevice", "_cuda_synchronize", "_cuda_emptyCache", "_cuda_init", "_cuda_sleep"):
        setattr(torch._C, name, _alone(_nothing))
    for name in ("_cuda_getDevice", "_cuda_exchangeDevice", "_cuda_maybeExchangeDevice"):
        setattr(torch._C, name, _alone(_zero))
    torch.cuda._exchange_device, torch.cuda._maybe_exchange_device = _alone(_zero), _alone(_zero)
    torch.cuda._sleep = _alone(_nothing)
    torch._C._cuda_getDeviceCount = lambda: 1
    torch._C._cuda_isCurrentStreamCapturing = lambda: False
    torch._C._cuda_getCurrentRawStream = _alone(_zero)
    torch.backends.cudnn.is_available = lambda: True
    torch.backends.cudnn.version = lambda: _CUDNN
    torch.backends.cuda.is_built = lambda: True
    if torch.version.cuda is None:
        torch.version.cuda = nvidia.CUDA  # of the driver that NVML tells of
    if hasattr(torch.cuda, "nccl"):
        torch.cuda.nccl.version = lambda: _NCCL
        torch.cuda.nccl.is_available = lambda *_: True
    torch.Tensor.pin_memory = lambda self, *_, **__: self
    torch.Tensor.is_pinned = lambda self, *_, **__: True
    torch.Tensor.record_stream = _alone(_nothing)
    share = torch.Tensor.share_memory_
    torch.Tensor.share_memory_ = lambda self: self if self.device.type == "cuda" else share(self)


def _flags(world) -> None:
    """Notes the flags of torch.backends that change what a GPU does."""
    def watch(module, flag, setting, words):
        kind = type(module)

        class Watching(kind):
            def __setattr__(self, name, value):
                if name == flag and sites.here(2).line:
                    world.found(setting, bool(value), words if value else f"no {words}", sites.here(2))
                super().__setattr__(name, value)

        try:
            object.__setattr__(module, "__class__", Watching)
        except TypeError:
            pass

    watch(torch.backends.cudnn, "benchmark", "cudnn-benchmark", "cudnn.benchmark")
    watch(torch.backends.cuda.matmul, "allow_tf32", "tf32", "TF32 for matrix products")
    original = torch.set_float32_matmul_precision

    def set_float32_matmul_precision(precision):
        world.found("tf32", precision != "highest", f"matrix products in fp32 of precision \"{precision}\"", sites.here(2))
        return original(precision)

    torch.set_float32_matmul_precision = set_float32_matmul_precision
