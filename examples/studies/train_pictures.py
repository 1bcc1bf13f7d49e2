"""Trains a small convolutional network on real pictures: by how many quarters is a picture turned?

    python train_pictures.py --batch 32 --workers 2 --epochs 3

Each sample is a JPEG file that a loader's worker decodes, crops and turns: labels cost nothing, and the loader has to work as it
does for ImageNet. Accuracy is of pictures that were held out. What it reaches goes to the study by stoker.report.
"""

import argparse
import pathlib
import random
import time

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import stoker

DEBIAN = pathlib.Path("/usr/share/doc/opencv-doc")  # of the package opencv-doc
SETS = {"photos": "examples/data", "pages": "opencv4/html"}
SIDE = 64


class Turned(Dataset):
    """`samples` crops of these files, each turned by 0 to 3 quarters; the same ones for the same seed."""

    def __init__(self, files: list, samples: int, seed: int):
        self.files, self.samples, self.seed = files, samples, seed

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, number: int):
        chance = random.Random(self.seed * 1_000_003 + number)
        picture = Image.open(chance.choice(self.files)).convert("RGB")
        side = min(picture.size) * chance.uniform(0.5, 1)
        left, top = (chance.uniform(0, length - side) for length in picture.size)
        picture = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
        quarters = chance.randrange(4)
        pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(SIDE, SIDE, 3).permute(2, 0, 1)
        return torch.rot90(pixels, quarters, (1, 2)).float() / 255 - 0.5, quarters


def network(width: int) -> torch.nn.Sequential:
    layers, before = [], 3
    for channels in (width, 2 * width, 4 * width):
        layers += [torch.nn.Conv2d(before, channels, 3, padding=1), torch.nn.BatchNorm2d(channels), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        before = channels
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(16 * before, 4))


def accuracy_of(model, loader, device) -> float:
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    model.train()
    return right / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="photos", help="photos, pages, or a folder of pictures")
    parser.add_argument("--root", type=pathlib.Path, default=DEBIAN, help="where the package's pictures are")
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--pin", default="false")
    parser.add_argument("--amp", default="false")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="adam")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=384, help="of an epoch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--start", default="scratch", help="scratch, or weights that --save wrote")
    parser.add_argument("--save", default="")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(given.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    folder = given.root / SETS[given.data] if given.data in SETS else pathlib.Path(given.data)
    files = sorted(folder.glob("*.jpg"))
    if len(files) < 10:
        raise SystemExit(f"{folder} has {len(files)} pictures: install opencv-doc, or name a folder with --data")
    train, held_out = files[len(files) // 5:], files[:len(files) // 5]
    options = {"batch_size": given.batch, "num_workers": given.workers, "pin_memory": given.pin == "true"}
    check = DataLoader(Turned(held_out, 128, 1), batch_size=64)
    model = network(given.width)
    if given.start != "scratch":
        model.load_state_dict(torch.load(given.start, weights_only=True))
    model.to(device)
    optimizer = (torch.optim.SGD(model.parameters(), lr=10 * given.lr, momentum=0.9) if given.optimizer == "sgd"
                 else torch.optim.Adam(model.parameters(), lr=given.lr))
    for epoch in range(1, given.epochs + 1):
        began = time.perf_counter()
        for x, y in DataLoader(Turned(train, given.samples, 100 * given.seed + epoch), **options):
            with torch.autocast(device, torch.bfloat16, enabled=given.amp == "true"):
                loss = torch.nn.functional.cross_entropy(model(x.to(device)).float(), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            stoker.report(samples=len(y), loss=loss)
        stoker.report(epoch=epoch, epoch_s=time.perf_counter() - began, accuracy=accuracy_of(model, check, device))
    if given.save:
        torch.save(model.state_dict(), given.save)


if __name__ == "__main__":
    main()
