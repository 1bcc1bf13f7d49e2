#!/usr/bin/env python3
"""Runs PyTorch's own fully_shard without a GPU and writes down what rank 0 allocates, from which stream, and frees.

    PYTHONPATH=python python3 tests/fsdp/record.py [--ranks 4]

writes transformer.step.gz and transformer-bf16.step.gz (the plain step), zero2.txt, zero3.txt, zero3-checkpoint.txt (each block
under torch.utils.checkpoint), zero3-reduce-fp32.txt and zero3-reduce-half.txt (MixedPrecisionPolicy with bf16 parameters) and
hybrid.txt (two copies of the model, with the first of these policies) beside this file; src/rewrite/shard_test.cc compares the
rewritten step with them. Fake CUDA tensors stand for the device, PyTorch's fake process group for the other ranks,
and `Handle` below for torch.cuda: it only remembers which stream is current.

Lines of the text files: `p PHASE`, `a ID BYTES STREAM`, `f ID`; the ids below the first `p` are the sharded parameters
and the inputs. STREAM is compute, gather (all_gather_copy_in_stream) or reduce (reduce_scatter_stream).
"""

import argparse
import contextlib
import pathlib
import subprocess
import sys

from stoker import device

HERE = pathlib.Path(__file__).resolve().parent
STREAMS = ("gather", "all_gather", "reduce", "all_reduce")  # in the order in which FSDPCommContext makes them


def transformer(batch=8, recompute=False):
    """Four blocks, with sizes that four ranks do not divide."""
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    width, words, length = 254, 1003, 32

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.qkv, self.proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.ln2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = self.qkv(self.ln1(x)).chunk(3, -1)
            x = x + self.proj(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
            return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(words, width)
            self.blocks = nn.ModuleList(Block() for _ in range(4))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, x):
            x = self.embed(x)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if recompute else block(x)
            return self.head(self.norm(x))

    return Transformer(), torch.zeros(batch, length, dtype=torch.int64), loss


def loss(output):
    return output.pow(2).mean()


class Handle:
    """Stands for torch.cuda in torch.distributed.fsdp."""

    current = ["compute"]

    class Event:
        def record(self, stream=None):
            return self

    class Stream:
        made = 0

        def __init__(self, priority=0, name=None):
            self.name = name or STREAMS[Handle.Stream.made % len(STREAMS)]
            Handle.Stream.made += name is None

        def wait_event(self, event):
            pass

        def wait_stream(self, stream):
            pass

        def record_event(self, event=None):
            return Handle.Event()

    @staticmethod
    @contextlib.contextmanager
    def stream(stream):
        Handle.current.append(stream.name)
        try:
            yield
        finally:
            Handle.current.pop()

    @staticmethod
    def current_stream():
        return Handle.Stream(name=Handle.current[-1])

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def set_device(index):
        pass


def install(fsdp):
    """Makes FSDP use `Handle`."""
    from torch.distributed import device_mesh

    for name in ("_fsdp_collectives", "_fsdp_param_group", "_fsdp_state", "_fsdp_init", "_fully_shard"):
        module = getattr(fsdp, name)
        if hasattr(module, "_get_device_handle"):
            module._get_device_handle = lambda *args: Handle
    device_mesh._get_device_handle = lambda *args: Handle


def recorder(fsdp_param):
    """A Recorder that knows streams, and storages that FSDP resizes: to 0 is a free, back is an allocation."""
    from stoker.tracing.recorder import Recorder

    class Streams(Recorder):
        def __init__(self):
            super().__init__("cuda")
            self.streams = []

        def add_storage(self, tensor, kind, byte_count=None):
            number = super().add_storage(tensor, kind, byte_count)
            if number == len(self.streams):
                self.streams.append(Handle.current[-1])
            return number

    recorder = Streams()

    def alloc_storage(tensor):
        storage, size = tensor.untyped_storage(), tensor.numel() * tensor.itemsize
        if storage.size() != size:
            storage.resize_(size)
            recorder.events.append(("a", recorder.add_storage(tensor, "transient")))

    def free_storage(tensor):
        if tensor.untyped_storage().size():
            known = recorder.storage_id(tensor)
            if known is not None:
                recorder._freed(known)
            tensor.untyped_storage().resize_(0)

    fsdp_param.alloc_storage, fsdp_param.free_storage = alloc_storage, free_storage
    return recorder


def record(ranks, reshard, recompute=False, reduce=None, copies=1):
    """One training step of rank 0 under fully_shard: text lines. `reduce`: what gradients are reduced in, with parameters in
    bf16; None: no policy."""
    import torch
    import torch.distributed as dist
    import torch.distributed.fsdp._fully_shard as fsdp
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from stoker.tracing import fake_model
    from stoker.tracing.surroundings import ModuleNames, quiet_collector

    dist.init_process_group("fake", rank=0, world_size=ranks * copies, store=FakeStore())
    install(fsdp)
    shape, names = ((copies, ranks), ("replicate", "shard")) if copies > 1 else ((ranks,), ("shard",))
    mesh = DeviceMesh("cuda", torch.arange(ranks * copies).view(shape), mesh_dim_names=names, _init_backend=True)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce) if reduce else MixedPrecisionPolicy()
    fake = FakeTensorMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
    with quiet_collector(), torch.autograd.set_multithreading_enabled(False), fake:
        model, tokens, _ = transformer(recompute=recompute)
        fake_model.Mover("cuda", "fp32").move(model)
        for block in model.blocks:
            fully_shard(block, mesh=mesh, reshard_after_forward=reshard, mp_policy=policy)
        fully_shard(model, mesh=mesh, reshard_after_forward=reshard, mp_policy=policy)
        tokens = torch.zeros(tokens.shape, dtype=torch.int64, device="cuda")
        noted = recorder(fsdp._fsdp_param)
        for parameter in model.parameters():
            noted.add_storage(parameter._local_tensor, "parameter")
        noted.add_storage(tokens, "input")
        with noted, ModuleNames(noted, model):
            noted.phase("forward")
            output = model(tokens)
            noted.phase("loss")
            value = loss(output)
            noted.phase("backward")
            value.backward()
            noted.phase("end")
        lines = [f"a {i} {noted.bytes[i]} compute" for i in range(len(noted.bytes)) if noted.kinds[i] != "transient"]
        for event in noted.events:
            if event[0] == "a":
                lines.append(f"a {event[1]} {noted.bytes[event[1]]} {noted.streams[event[1]]}")
            elif event[0] in "pf":
                lines.append(f"{event[0]} {event[1]}")
        del output, value
    dist.destroy_process_group()
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    found = device.prepare(print)
    if found.capture != "fake-cuda":
        sys.exit(f"record.py needs fake CUDA tensors, this is {found.capture}")
    import torch
    for name, reshard, recompute, reduce, copies in (
            ("zero3", None, False, None, 1), ("zero2", False, False, None, 1), ("zero3-checkpoint", None, True, None, 1),
            ("zero3-reduce-fp32", None, False, torch.float32, 1), ("zero3-reduce-half", None, False, torch.bfloat16, 1),
            ("hybrid", None, False, torch.float32, 2)):
        lines = record(options.ranks, reshard, recompute, reduce, copies)
        (HERE / f"{name}.txt").write_text("\n".join(lines) + "\n")
        print(f"{name}.txt: {len(lines)} lines")
    for precision, out in (("fp32", "transformer.step.gz"), ("bf16", "transformer-bf16.step.gz")):
        subprocess.run([sys.executable, "-m", "stoker", "capture", f"{__file__}:transformer", "--precision", precision, "-o",
                        str(HERE / out)], check=True)


if __name__ == "__main__":
    main()
