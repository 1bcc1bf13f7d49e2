"""The data sets of the scenarios: real work, the same for the same index, nothing downloaded."""

from __future__ import annotations

import io
import math
import os
import random
import time

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
_DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
SMALL_SIDE = 32
RECORD_BYTES = 1 + 3 * SMALL_SIDE * SMALL_SIDE  # label, then one plane a colour, as CIFAR-10's binary version


class Pool(Dataset):
    """`samples` indices over a pool of `pool` different samples."""

    def __init__(self, pool: int, samples: int):
        self.pool, self.samples = pool, samples

    def __len__(self):
        return self.samples


def _random_crop(width: int, height: int, chance: random.Random) -> tuple:
    """A box of 8 to 100 % of the area, its sides between 3:4 and 4:3; the middle square where ten draws do not fit."""
    for _ in range(10):
        area = width * height * chance.uniform(0.08, 1.0)
        ratio = math.exp(chance.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = chance.randint(0, width - w), chance.randint(0, height - h)
            return x, y, x + w, y + h
    side = min(width, height)
    x, y = (width - side) // 2, (height - side) // 2
    return x, y, x + side, y + side


class Pictures(Pool):
    """JPEG files: decode, random crop to 224 x 224, flip, float, normalise."""

    def __init__(self, paths: list, samples: int, side: int = 224):
        super().__init__(len(paths), samples)
        self.paths, self.side = paths, side

    def __getitem__(self, index):
        from PIL import Image

        chance = random.Random(index)
        with Image.open(self.paths[index % self.pool]) as file:
            picture = file.convert("RGB")
        box = _random_crop(*picture.size, chance)
        picture = picture.resize((self.side, self.side), Image.Resampling.BILINEAR, box=box)
        if chance.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
        return pixels.to(torch.float32).div_(255).sub_(_MEAN).div_(_DEVIATION), index % 1000


def _augmented(pixels: np.ndarray, index: int) -> torch.Tensor:
    """Shift by up to four pixels, flip, float, normalise."""
    chance = random.Random(index)
    padded = np.pad(pixels, ((0, 0), (4, 4), (4, 4)))
    x, y = chance.randint(0, 8), chance.randint(0, 8)
    cut = padded[:, y:y + SMALL_SIDE, x:x + SMALL_SIDE]
    if chance.random() < 0.5:
        cut = cut[:, :, ::-1]
    return torch.from_numpy(np.ascontiguousarray(cut)).to(torch.float32).div_(255).sub_(_MEAN).div_(_DEVIATION)


class SmallRecords(Pool):
    """32 x 32 images in one binary file, one read a sample."""

    def __init__(self, path: str, pool: int, samples: int):
        super().__init__(pool, samples)
        self.path, self.file = path, None

    def __getitem__(self, index):
        if self.file is None:  # each process has its own; an open file could not be pickled either
            self.file = open(self.path, "rb", buffering=0)
        record = os.pread(self.file.fileno(), RECORD_BYTES, index % self.pool * RECORD_BYTES)
        pixels = np.frombuffer(record, np.uint8, offset=1).reshape(3, SMALL_SIDE, SMALL_SIDE)
        return _augmented(pixels, index), record[0]

    def __getstate__(self):
        return {**self.__dict__, "file": None}


class SmallFiles(Pool):
    """32 x 32 images, a PNG file each."""

    def __init__(self, paths: list, samples: int):
        super().__init__(len(paths), samples)
        self.paths = paths

    def __getitem__(self, index):
        from PIL import Image

        with Image.open(self.paths[index % self.pool]) as file:
            pixels = np.array(file.convert("RGB"))
        return _augmented(pixels.transpose(2, 0, 1), index), index % 10


def write_records(path: str, count: int) -> None:
    chance = np.random.default_rng(1)
    with open(path, "wb") as file:
        for _ in range(count):
            file.write(chance.integers(0, 256, RECORD_BYTES, dtype=np.uint8).tobytes())


def write_small_files(folder: str, count: int) -> list:
    from PIL import Image

    chance = np.random.default_rng(2)
    paths = []
    for i in range(count):
        coarse = chance.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((SMALL_SIDE, SMALL_SIDE), Image.Resampling.BICUBIC)
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        paths.append(os.path.join(folder, f"{i:05d}.png"))
        with open(paths[-1], "wb") as file:
            file.write(buffer.getvalue())
    return paths


_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def _documents(count: int) -> list:
    """Texts of made-up words: lengths lognormal (median 60 words), words by Zipf's law."""
    chance = np.random.default_rng(3)
    words = ["".join(chance.choice(_SYLLABLES, chance.integers(1, 5))) for _ in range(4000)]
    frequency = 1 / np.arange(1, len(words) + 1)
    frequency /= frequency.sum()
    lengths = np.clip(np.exp(chance.normal(math.log(60), 0.7, count)), 5, 400).astype(int)
    return [" ".join(chance.choice(words, n, p=frequency)) for n in lengths]


class Tokens(Pool):
    """Texts split into the longest known pieces, in pure Python, as WordPiece does."""

    def __init__(self, pool: int, samples: int):
        super().__init__(pool, samples)
        self.texts = _documents(pool)
        pieces = sorted({*_SYLLABLES, *"abcdefghijklmnopqrstuvwxyz", *(a + b for a in _SYLLABLES for b in _SYLLABLES[::3])})
        self.number_of = {piece: i + 2 for i, piece in enumerate(pieces)}
        self.longest = max(map(len, pieces))

    def __getitem__(self, index):
        numbers = [1]
        for word in self.texts[index % self.pool].split():
            at = 0
            while at < len(word):
                for end in range(min(len(word), at + self.longest), at, -1):
                    number = self.number_of.get(word[at:end])
                    if number is not None:
                        numbers.append(number)
                        at = end
                        break
        return torch.tensor(numbers)

    def lengths(self) -> list:
        """Characters of each text of the pool: what a sampler sorts by."""
        return [len(text) for text in self.texts]


def padded(samples: list) -> dict:
    """Collate: a batch as long as its longest sequence, a mask and labels beside it."""
    tokens = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)
    return {"tokens": tokens, "mask": tokens != 0, "next": torch.roll(tokens, -1, 1)}


class ByLength(Sampler):
    """Batches of texts of like length: shuffled, sorted within stretches of 20 batches, batches shuffled again."""

    def __init__(self, lengths: list, samples: int, batch: int, seed: int):
        self.lengths, self.samples, self.batch_size, self.seed = lengths, samples, batch, seed

    def __len__(self):
        return math.ceil(self.samples / self.batch_size)

    def __iter__(self):
        chance = random.Random(self.seed)
        order = list(range(self.samples))
        chance.shuffle(order)
        stretch, batches = 20 * self.batch_size, []
        for start in range(0, len(order), stretch):
            part = sorted(order[start:start + stretch], key=lambda i: self.lengths[i % len(self.lengths)])
            batches += [part[i:i + self.batch_size] for i in range(0, len(part), self.batch_size)]
        chance.shuffle(batches)
        yield from batches


class Recordings(Pool):
    """Sound: cut, noise, short-time Fourier transform, logarithm; a dict of arrays, a number and a text."""

    LENGTH, FRAME, HOP, BANDS = 16384, 512, 128, 64

    def __init__(self, pool: int, samples: int):
        super().__init__(pool, samples)
        chance = np.random.default_rng(4)
        self.sounds = chance.standard_normal((pool, 2 * self.LENGTH), dtype=np.float32).cumsum(axis=1)
        self.window = np.hanning(self.FRAME).astype(np.float32)

    def __getitem__(self, index):
        chance = np.random.default_rng(index)
        start = int(chance.integers(0, self.LENGTH))
        wave = self.sounds[index % self.pool, start:start + self.LENGTH]
        wave = wave - wave.mean()
        wave += 0.05 * wave.std() * chance.standard_normal(self.LENGTH, dtype=np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(wave, self.FRAME)[::self.HOP] * self.window
        power = np.abs(np.fft.rfft(frames, axis=1)[:, 1:]) ** 2
        bands = np.log1p(np.add.reduceat(power, np.arange(0, self.FRAME // 2, self.FRAME // 2 // self.BANDS), axis=1))
        return {"wave": wave, "spectrum": bands.astype(np.float32), "loud": bands.mean(axis=1) > bands.mean(),
                "label": index % 50, "name": f"recording-{index % self.pool:04d}"}


class OneSlow(Pool):
    """Samples of about a millisecond, of which one in a hundred waits for a tenth of a second besides."""

    SLOW_EVERY, WAIT_S = 100, 0.1

    def __getitem__(self, index):
        values = np.random.default_rng(index).random(3 * 64 * 64, dtype=np.float32)
        ranks = np.sort(np.sqrt(values))
        for _ in range(4):
            ranks = np.sort(np.sin(ranks[::-1] * 3))
        if index % self.SLOW_EVERY == self.SLOW_EVERY // 2:
            time.sleep(self.WAIT_S)
        return torch.from_numpy(values.reshape(3, 64, 64)), float(ranks[0])


class Part(Dataset):
    """`samples` of a user's data set: chosen at random where it has more, gone round where it has fewer."""

    def __init__(self, data, samples: int):
        self.data, self.samples, count = data, samples, len(data)
        self.chosen = random.Random(0).sample(range(count), samples) if samples < count else None

    def __len__(self):
        return self.samples

    def _of(self, index: int) -> int:
        return self.chosen[index] if self.chosen is not None else index % len(self.data)

    def __getitem__(self, index):
        return self.data[self._of(index)]


class BatchedPart(Part):
    """The part of a data set that makes all samples of a batch at once."""

    def __getitems__(self, indices):
        return self.data.__getitems__([self._of(index) for index in indices])


def part_of(data, samples: int) -> Part:
    return (BatchedPart if callable(getattr(data, "__getitems__", None)) else Part)(data, samples)
