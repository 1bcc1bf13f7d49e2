"""Data sets for the tests of the probe: good ones and every kind of bad one."""

import os
import random
import signal
import subprocess
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


def spin(ms):
    """CPU time of this thread, whatever else runs."""
    until = time.thread_time() + ms * 1e-3
    while time.thread_time() < until:
        pass


class Spins(Dataset):
    """`ms` of CPU time a sample; one float tensor and a label."""

    def __init__(self, length=64, ms=1.0, floats=1000):
        self.length, self.ms, self.floats = length, ms, floats

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        spin(self.ms)
        return torch.zeros(self.floats), index


class Sleeps(Spins):
    def __getitem__(self, index):
        time.sleep(2e-3)
        return super().__getitem__(index)


class Raises(Spins):
    def __init__(self, at, **arguments):
        super().__init__(**arguments)
        self.at = at

    def __getitem__(self, index):
        if index % self.at == 0:
            raise ValueError(f"broken picture {index}")
        return super().__getitem__(index)


class Shapes(Spins):
    def __getitem__(self, index):
        return torch.zeros(3, 8 + index % 2)


class Nested(Spins):
    def __getitem__(self, index):
        import numpy

        return {"image": {"pixels": torch.zeros(3, 4), "size": (3, 4)}, "array": numpy.ones(5, dtype="int32"),
                "text": "word " * (index % 3)}


class Threads(Spins):
    def __getitem__(self, index):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return super().__getitem__(index)


class Forks(Spins):
    """Leaves processes behind, two in each worker."""

    started = 0

    def __getitem__(self, index):
        if self.started < 2:
            self.started += 1
            subprocess.Popen(["sleep", "612.25"])
        return super().__getitem__(index)


class Moves(Spins):
    def __getitem__(self, index):
        os.chdir("/")
        return super().__getitem__(index)


class Prints(Spins):
    def __getitem__(self, index):
        print("reading", index)
        return super().__getitem__(index)


class Exits(Spins):
    def __getitem__(self, index):
        os._exit(7)


class Huge(Spins):
    def __getitem__(self, index):
        return torch.zeros(16 << 20, dtype=torch.uint8)


class Slow(Spins):
    def __getitem__(self, index):
        time.sleep(600)


class Unpicklable(Spins):
    def __init__(self):
        super().__init__()
        self.transform = lambda x: x


class Stream(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        at = 0
        while self.length is None or at < self.length:
            spin(0.2)
            yield torch.full((10,), float(at))
            at += 1


class SizedStream(Stream):
    def __len__(self):
        return self.length


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class Crop:
    def __call__(self, x):
        spin(3)
        return x[:, :4]


class Flip:
    def __call__(self, x):
        spin(1)
        return x.flip(0)


class Transformed(Dataset):
    def __init__(self):
        self.transform = Compose([Crop(), Flip()])

    def __len__(self):
        return 64

    def __getitem__(self, index):
        spin(1)
        return self.transform(torch.zeros(3, 8)), index


class Sampled(Dataset):
    """Its time goes into two functions that no transform list names."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.parse(index) + self.augment()

    def parse(self, index):
        spin(4)
        return torch.zeros(4)

    def augment(self):
        spin(1)
        return torch.ones(4)


class Objects(Spins):
    """A hundred thousand Python strings that each worker copies."""

    def __init__(self):
        super().__init__(length=100_000, ms=0.05)
        self.paths = [f"/a/folder/of/pictures/and/a/name/{i:012d}.jpg" for i in range(100_000)]

    def __getitem__(self, index):
        spin(self.ms)
        return torch.zeros(4), len(self.paths[index])


class Buckets:
    """A batch sampler: batches of equals."""

    def __init__(self, length, batch):
        self.length, self.batch_size = length, batch

    def __iter__(self):
        starts = list(range(0, self.length - self.batch_size + 1, self.batch_size))
        random.shuffle(starts)
        for start in starts:
            yield list(range(start, start + self.batch_size))

    def __len__(self):
        return self.length // self.batch_size


class Grows(Dataset):
    """Its samples cost more the higher the index."""

    def __len__(self):
        return 96

    def __getitem__(self, index):
        spin(0.3 + 0.02 * (index // 8))
        return torch.zeros(10 + index // 8)


def pad(samples):
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)


def init(worker):
    os.environ["STOKER_TEST_WORKER"] = str(worker)


class NeedsInit(Spins):
    def __getitem__(self, index):
        return torch.full((3,), float(os.environ["STOKER_TEST_WORKER"]))


def spins():
    return Spins()


def loader():
    return DataLoader(Spins(), batch_size=16, shuffle=True, num_workers=3, prefetch_factor=4, drop_last=True)


def nothing():
    return None


def needs(path):
    return Spins()


def raises():
    raise RuntimeError("no data here")


def buckets():
    return DataLoader(Grows(), batch_sampler=Buckets(96, 8), collate_fn=pad)


def with_init():
    return DataLoader(NeedsInit(), batch_size=8, num_workers=2, worker_init_fn=init)


class Pictures(Dataset):
    """JPEG files, by Pillow alone."""

    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        from PIL import Image

        with open(self.paths[index], "rb") as file:
            picture = Image.open(file).convert("RGB").resize((224, 224))
        return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(224, 224, 3)


class Dies(Spins):
    def __init__(self, name):
        super().__init__()
        self.number = getattr(signal, name)

    def __getitem__(self, index):
        signal.signal(self.number, signal.SIG_DFL) if self.number != signal.SIGKILL else None
        os.kill(os.getpid(), self.number)


class DiesLater(Spins):
    """Lives for sixty samples of a process."""

    made = 0

    def __getitem__(self, index):
        self.made += 1
        if self.made > 60:
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().__getitem__(index)


def always_raises():
    return Raises(1)


def forks():
    return Forks()


def pad_nothing(x):
    return x


class Wide(Spins):
    """Its samples are large enough for parallel loops."""

    def __getitem__(self, index):
        return torch.ones(1 << 18).sqrt()


class Whole(Spins):
    def __getitem__(self, index):
        spin(1)
        return torch.zeros(16, 10)


class Getitems(Spins):
    """Makes a batch in one call: half a millisecond a sample."""

    def __getitem__(self, index):
        raise AssertionError("a loader asks for whole batches")

    def __getitems__(self, indices):
        spin(0.5 * len(indices))
        return [(torch.zeros(10), index) for index in indices]
