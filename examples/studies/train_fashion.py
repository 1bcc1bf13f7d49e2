"""Trains a small convolutional network to tell ten kinds of clothes apart, from pictures that a DataLoader's workers crop and flip.

    python train_fashion.py --batch 32 --workers 1 --epochs 3

Fashion-MNIST as Debian's package dataset-fashion-mnist has it. Each sample is made as in training on photos: a random crop is
resized and flipped by Pillow. Accuracy and loss of 2,000 pictures of the test set go to the study by stoker.report.
"""

import argparse
import gzip
import pathlib
import random
import time

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import stoker

DEBIAN = pathlib.Path("/usr/share/datasets/fashion-mnist")  # of the package dataset-fashion-mnist
SIDE = 28
HELD_OUT = 2000


def read_idx(path: pathlib.Path) -> torch.Tensor:
    """The pictures or labels of a gzip file in MNIST's format."""
    data = gzip.decompress(path.read_bytes())
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.frombuffer(bytearray(data[4 + 4 * data[3]:]), dtype=torch.uint8).view(sizes)


class Clothes(Dataset):
    """Pictures with their kinds; for training each is cropped and flipped by chance."""

    def __init__(self, root: pathlib.Path, part: str, samples: int, change: bool):
        self.pictures = read_idx(root / f"{part}-images-idx3-ubyte.gz")[:samples]
        self.kinds = read_idx(root / f"{part}-labels-idx1-ubyte.gz")[:samples].long()
        self.change = change

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, number: int):
        pixels, kind = self.pictures[number], self.kinds[number]
        if self.change:
            picture = Image.frombytes("L", (SIDE, SIDE), pixels.numpy().tobytes())
            side = SIDE * random.uniform(0.8, 1)
            left, top = random.uniform(0, SIDE - side), random.uniform(0, SIDE - side)
            picture = picture.resize((4 * SIDE, 4 * SIDE), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side))
            picture = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
            if random.random() < 0.5:
                picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(SIDE, SIDE)
        return pixels[None].float() / 255 - 0.3, kind


def network(width: int) -> torch.nn.Sequential:
    layers, before = [], 1
    for channels in (width, 2 * width):
        layers += [torch.nn.Conv2d(before, channels, 3, padding=1), torch.nn.BatchNorm2d(channels), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        before = channels
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(before * (SIDE // 4) ** 2, 10))


def make_model():
    """For `stoker calibrate --for train_fashion.py:make_model`: the network and its input."""
    return network(8), torch.empty(32, 1, SIDE, SIDE)


def make_loader():
    """For `stoker probe train_fashion.py:make_loader`."""
    return DataLoader(Clothes(DEBIAN, "train", 6000, True), batch_size=32, shuffle=True)


def check(model, loader, device) -> dict:
    model.eval()
    right, loss = 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            scores = model(x.to(device))
            right += (scores.argmax(1) == y.to(device)).sum().item()
            loss += torch.nn.functional.cross_entropy(scores, y.to(device), reduction="sum").item()
    model.train()
    return {"accuracy": right / len(loader.dataset), "loss": loss / len(loader.dataset)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=DEBIAN, help="where the data set's files are")
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=6000, help="of an epoch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random.seed(given.seed)
    torch.manual_seed(given.seed)
    torch.set_num_threads(given.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if not given.root.is_dir():
        raise SystemExit(f"{given.root} is not there: install dataset-fashion-mnist, or name a folder with --root")
    train = DataLoader(Clothes(given.root, "train", given.samples, True), batch_size=given.batch, num_workers=given.workers, shuffle=True)
    held_out = DataLoader(Clothes(given.root, "t10k", HELD_OUT, False), batch_size=500)
    model = network(given.width).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=given.lr)
    for epoch in range(1, given.epochs + 1):
        began = time.perf_counter()
        for x, y in train:
            loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            stoker.report(samples=len(y))
        stoker.report(epoch=epoch, epoch_s=time.perf_counter() - began, **check(model, held_out, device))


if __name__ == "__main__":
    main()
