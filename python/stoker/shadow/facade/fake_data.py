"""Data sets that stand in for torchvision's, where the script's own are not there: images of one size, and labels."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import CaptureError


@dataclass(frozen=True)
class FakeData:
    """--fake-data 3x224x224:1000:1281167."""

    channels: int
    height: int
    width: int
    classes: int = 1000
    samples: int = 50_000

    @classmethod
    def of(cls, text: str | None) -> FakeData | None:
        if text is None:
            return None
        shape, *counts = text.split(":")
        try:
            made = cls(*(int(n) for n in shape.split("x")), *(int(n.replace(",", "")) for n in counts))
        except (ValueError, TypeError):
            raise CaptureError(f"--fake-data {text}: write CHANNELSxHEIGHTxWIDTH, such as 3x224x224, or 3x224x224:1000:50000") from None
        if made.channels not in (1, 3) or min(made.height, made.width, made.classes, made.samples) < 1:
            raise CaptureError(f"--fake-data {text}: images have 1 or 3 channels, and every number is 1 or more")
        return made


def install(world) -> None:
    """Puts it in the place of every data set of torchvision that reads files."""
    fake = world.request.fake_data
    if fake is None:
        return
    try:
        from torchvision import datasets
    except ImportError:
        world.note("--fake-data: there is no torchvision whose data sets it could stand in for")
        return
    for name in datasets.__all__:
        cls = getattr(datasets, name)
        if isinstance(cls, type) and issubclass(cls, datasets.VisionDataset) and cls is not datasets.VisionDataset and name != "FakeData":
            _replace(world, cls, fake)


def _replace(world, cls, fake: FakeData) -> None:
    def __init__(self, *args, transform=None, target_transform=None, transforms=None, **kwargs):
        world.note(f"{cls.__name__} is stood in for by {fake.samples:,} images of {fake.channels}x{fake.height}x{fake.width} (--fake-data)")
        given = [a for a in args if callable(a)]  # transform and target_transform, where they are given by position
        self.root, self.transforms, self.loader = "", transforms, None
        self.transform = transform if transform is not None else given[0] if given else None
        self.target_transform = target_transform if target_transform is not None else given[1] if len(given) > 1 else None
        self.classes = [str(i) for i in range(fake.classes)]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __getitem__(self, index):
        from PIL import Image

        if not 0 <= index < fake.samples:
            raise IndexError(index)
        image = Image.new("RGB" if fake.channels == 3 else "L", (fake.width, fake.height), index % 256)
        label = index % fake.classes
        if self.transforms is not None:
            return self.transforms(image, label)
        return (self.transform(image) if self.transform else image), (self.target_transform(label) if self.target_transform else label)

    cls.__init__, cls.__getitem__, cls.__len__ = __init__, __getitem__, lambda self: fake.samples
    cls.targets = property(lambda self: [i % fake.classes for i in range(fake.samples)])
    cls.samples = cls.imgs = property(lambda self: [("", i % fake.classes) for i in range(fake.samples)])
