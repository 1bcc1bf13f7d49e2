"""A real training job on the CPU with a planted fault, for tests/jobs/run.py.

The model is small, the DataLoader is PyTorch's own. With --device the step sleeps as a loop does that waits for a GPU;
without, the step computes on the CPU. stoker.Observer writes beside it how long the loop waited for data, so that what
was seen from outside can be set beside what the loop itself knows.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy
import torch
from marks import marks_of
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import stoker


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--observation", required=True)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--prefetch", type=int, default=2)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--samples", type=int, default=100_000)
    p.add_argument("--persistent", action="store_true")
    p.add_argument("--out-of-order", action="store_true")
    p.add_argument("--context", default="fork")
    p.add_argument("--threads", type=int, default=1, help="of PyTorch in the training process")
    p.add_argument("--worker-threads", type=int, default=0)
    p.add_argument("--step", type=float, default=0.05, help="seconds that a step takes")
    p.add_argument("--work", type=int, default=0, help="passes that a step computes, instead of a time")
    p.add_argument("--count", help="a file in which the number of steps so far stands, eight bytes")
    p.add_argument("--device", action="store_true", help="the step sleeps instead of computing")
    p.add_argument("--decode", type=int, default=1, help="times that a sample's picture is decoded")
    p.add_argument("--slow-every", type=int, default=0, help="one sample in so many is slow")
    p.add_argument("--slow", type=float, default=0, help="seconds that it takes")
    p.add_argument("--wait", type=float, default=0, help="seconds that a sample sleeps, as a far storage makes it")
    p.add_argument("--read", type=int, default=0, help="bytes that a sample reads past the page cache")
    p.add_argument("--save-every", type=int, default=0)
    p.add_argument("--save-bytes", type=int, default=0)
    p.add_argument("--validate-every", type=int, default=0, help="steps between two validation passes")
    p.add_argument("--validate", type=float, default=0, help="seconds that one takes")
    p.add_argument("--tell-validation", action="store_true", help="the observer is told that it is one")
    p.add_argument("--tensors", type=int, default=1, help="tensors in a sample")
    p.add_argument("--uneven", type=float, default=0, help="a sample decodes up to so many times as often as another")
    p.add_argument("--silent", action="store_true", help="the loop tells nobody of its steps")
    p.add_argument("--traceml", action="store_true", help="marks steps for TraceML, under `traceml run`")
    p.add_argument("--leak", type=int, default=0, help="bytes kept every step")
    return p.parse_args()


class Pictures(Dataset):
    """One picture, decoded as often as asked; what else a sample does is planted."""

    def __init__(self, a, file):
        self.a, self.file = a, file
        pixels = numpy.random.default_rng(1).integers(0, 255, (48, 48, 3), dtype=numpy.uint8)
        buffer = io.BytesIO()
        Image.fromarray(pixels).resize((224, 224)).save(buffer, "JPEG", quality=90)
        self.jpeg = buffer.getvalue()

    def __len__(self):
        return self.a.samples

    def read(self, index):
        handle = os.open(self.file, os.O_RDONLY | os.O_DIRECT)
        try:
            room = os.fstat(handle).st_size - self.a.read
            os.lseek(handle, (index * 7919 * 4096) % max(4096, room // 4096 * 4096), os.SEEK_SET)
            import mmap
            block = mmap.mmap(-1, self.a.read)
            os.readv(handle, [block])
        finally:
            os.close(handle)

    def __getitem__(self, index):
        a = self.a
        if a.read:
            self.read(index)
        if a.wait:
            time.sleep(a.wait)
        for _ in range(self.times(index)):
            picture = numpy.asarray(Image.open(io.BytesIO(self.jpeg)).convert("RGB"))
        if a.slow_every and index % a.slow_every == 3:
            burn(a.slow)
        if a.worker_threads:
            m = torch.randn(700, 700)
            for _ in range(3):
                m = m @ m / 700
        image = torch.from_numpy(picture[:64, :64].copy()).permute(2, 0, 1).float() / 255
        return (image, index % 10, *(torch.zeros(64) for _ in range(a.tensors - 1)))

    def times(self, index):
        """How often this sample is decoded: a few are far dearer than most, as pictures are."""
        if not self.a.uneven:
            return self.a.decode
        place = (index * 2654435761 % 2**32) / 2**32
        return max(1, round(self.a.decode * self.a.uneven ** (2 * place - 1)))


def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, 2), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, 2), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10))

    def forward(self, x):
        return self.layers(x)


def threads_of_workers(count):
    def init(_):
        torch.set_num_threads(count)
    return init


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(dir=Path(a.observation).parent) as folder:
        file = Path(folder) / "data"
        if a.read:
            file.write_bytes(os.urandom(64 << 20))
        train(a, folder, str(file))


class Silent:
    """In place of an observer."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def batches(self, loader):
        return loader

    def step(self, **_):
        return contextlib.nullcontext()


def observer_of(a):
    return Silent() if a.silent else stoker.Observer(a.observation, batch=a.batch)


def validate(a, model, images, observer):
    """Passes over the same batch again and again, without gradients."""
    until = time.monotonic() + a.validate
    while time.monotonic() < until:
        with observer.step(validation=True) if a.tell_validation else contextlib.nullcontext(), torch.no_grad():
            model(images)
            if a.device:
                time.sleep(0.02)


def train(a, folder, file):
    options = {}
    if a.workers:
        options = {"prefetch_factor": a.prefetch, "persistent_workers": a.persistent, "in_order": not a.out_of_order,
                   "multiprocessing_context": a.context}
        if a.worker_threads:
            options["worker_init_fn"] = threads_of_workers(a.worker_threads)
    loader = DataLoader(Pictures(a, file), a.batch, shuffle=True, num_workers=a.workers, **options)
    model = Net()
    marks, counter = marks_of(a, model), counter_of(a)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    kept, steps, done, began = [], 0, False, time.monotonic()
    with observer_of(a) as observer:
        while not done:
            for images, labels, *_ in observer.batches(loader):
                with observer.step(), marks():
                    step(a, model, optimizer, images, labels)
                    steps += 1
                    counter[:8] = steps.to_bytes(8, "little")
                    if a.leak:
                        kept.append(numpy.ones(a.leak, dtype=numpy.uint8))
                    if a.save_every and steps % a.save_every == 0:
                        with open(Path(folder) / "checkpoint", "wb") as out:
                            torch.save({"model": model.state_dict(), "more": torch.zeros(a.save_bytes // 4)}, out)
                            out.flush()
                            os.fsync(out.fileno())
                if a.validate_every and steps % a.validate_every == 0:
                    validate(a, model, images, observer)
                done = time.monotonic() - began > a.seconds
                if done:
                    break
    print(f"{steps} steps in {time.monotonic() - began:.1f} s", file=sys.stderr)


def counter_of(a):
    """Where a step counts itself for tests/jobs/cost.py."""
    import mmap

    if not a.count:
        return bytearray(8)
    Path(a.count).write_bytes(bytes(8))
    with open(a.count, "r+b") as file:
        return mmap.mmap(file.fileno(), 8)


def step(a, model, optimizer, images, labels):
    until = time.monotonic() + a.step
    if a.device:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(max(0.0, until - time.monotonic()))
        return
    end = time.thread_time() + a.step
    passes = 0
    while passes < a.work if a.work else time.thread_time() < end:
        passes += 1
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if a.threads > 1:
            m = torch.randn(600, 600)
            m @ m


if __name__ == "__main__":
    main()
