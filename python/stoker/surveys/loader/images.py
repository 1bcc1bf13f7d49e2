"""JPEG files, the usual training transform, and a Dataset of both."""

from __future__ import annotations

import pathlib
import resource
import sys

from torch.utils.data import Dataset
from torchvision import transforms
from torchvision.datasets.folder import default_loader

STAGES = ["read", "decode", "resize", "flip", "to_tensor", "normalize"]
IMAGE_SIZE = 224
IMAGE_BYTES = 3 * IMAGE_SIZE * IMAGE_SIZE * 4
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def say(text):
    print(text, file=sys.stderr, flush=True)


def images_in(folder):
    """JPEG files that Pillow can decode, in the order of their names."""
    usable = []
    for path in sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg")):
        try:
            default_loader(str(path))
            usable.append(str(path))
        except OSError:
            pass
    if not usable:
        sys.exit(f"measure-loader: no usable JPEG files in {folder}")
    return usable


def training_transform():
    return transforms.Compose([
        transforms.RandomResizedCrop(IMAGE_SIZE), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])


class Images(Dataset):
    """Decoded and transformed as for training; labels are the index."""

    def __init__(self, paths):
        self.paths, self.transform = paths, training_transform()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(default_loader(self.paths[index])), index % 1000


def children_cpu():
    """CPU seconds of the children that have ended."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime
