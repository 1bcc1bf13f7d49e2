"""One network and one set of pictures in two frameworks: how many samples a second does each train, and what does it learn?

    python train_frameworks.py --framework numpy --batch 64

A layer of 128 between pixels and the answer by how many quarters a picture is turned. PyTorch trains it with autograd; NumPy
with the same arithmetic by hand. Another framework is another function with the same two steps.
"""

import argparse
import os
import pathlib


def pictures(root: pathlib.Path, count: int):
    """Small grey crops with their labels; decoded once, so that frameworks are compared and not JPEG libraries."""
    import numpy
    from PIL import Image

    chance = numpy.random.default_rng(0)
    files = sorted((root / "examples/data").glob("*.jpg"))
    if not files:
        raise SystemExit(f"{root} has no pictures: install opencv-doc, or name its folder with --root")
    small = [Image.open(file).convert("L").resize((96, 96)) for file in files]
    labels = chance.integers(0, 4, count)
    crops = []
    for label in labels:
        side = int(chance.integers(64, 97))
        left, top = chance.integers(0, 97 - side, 2)
        crop = small[chance.integers(len(small))].resize((32, 32), box=(left, top, left + side, top + side))
        crops.append(numpy.rot90(numpy.asarray(crop, numpy.float32) / 255 - 0.5, label).ravel())
    return numpy.stack(crops), labels


def numpy_trainer(threads: int):
    import numpy

    chance = numpy.random.default_rng(0)
    w, v = (chance.normal(0, size[0] ** -0.5, size).astype(numpy.float32) for size in ((1024, 128), (128, 4)))

    def forward(x):
        hidden = numpy.maximum(x @ w, 0)
        return hidden, hidden @ v

    def step(x, y):
        hidden, out = forward(x)
        out = numpy.exp(out - out.max(1, keepdims=True))
        out /= out.sum(1, keepdims=True)
        out[numpy.arange(len(y)), y] -= 1
        out /= len(y)
        back = out @ v.T * (hidden > 0)
        v[:] -= 0.1 * (hidden.T @ out)
        w[:] -= 0.1 * (x.T @ back)

    return step, lambda x: forward(x)[1].argmax(1)


def torch_trainer(threads: int):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, lambda x: model(torch.from_numpy(x)).argmax(1).numpy()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", choices=("torch", "numpy"), default="torch")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("/usr/share/doc/opencv-doc"))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(given.threads)  # read when NumPy is imported
    import stoker

    x, y = pictures(given.root, 4096)
    step, answer = {"torch": torch_trainer, "numpy": numpy_trainer}[given.framework](given.threads)
    for epoch in range(1, given.epochs + 1):
        for begin in range(0, 3584, given.batch):
            step(x[begin:begin + given.batch], y[begin:begin + given.batch])
            stoker.report(samples=len(y[begin:begin + given.batch]))
        stoker.report(epoch=epoch, accuracy=float((answer(x[3584:]) == y[3584:]).mean()))


if __name__ == "__main__":
    main()
