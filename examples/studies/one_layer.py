"""One layer, forward and backward, again and again: how many samples a second, by framework, layer, batch and threads.

    python one_layer.py --framework torch --layer dense --batch 64 --threads 2

NumPy does the same arithmetic as PyTorch: y = x W, then the gradients of W and x.
"""

import argparse
import os


def numpy_step(layer: str, batch: int):
    import numpy

    random = numpy.random.default_rng(0)
    if layer == "dense":
        x, w = random.random((batch, 512), numpy.float32), random.random((512, 512), numpy.float32)
    else:  # a 3 x 3 convolution of 16 channels on 16 x 16 pictures, unrolled as im2col does
        x, w = random.random((batch * 256, 144), numpy.float32), random.random((144, 16), numpy.float32)

    def step():
        y = x @ w
        return x.T @ y, y @ w.T

    return step


def torch_step(layer: str, batch: int, threads: int):
    import torch

    torch.set_num_threads(threads)
    if layer == "dense":
        module, x = torch.nn.Linear(512, 512), torch.rand(batch, 512)
    else:
        module, x = torch.nn.Conv2d(16, 16, 3, padding=1), torch.rand(batch, 16, 16, 16)
    x.requires_grad_()

    def step():
        module(x).sum().backward()

    return step


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", choices=("torch", "numpy"), default="torch")
    parser.add_argument("--layer", choices=("dense", "conv"), default="dense")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(given.threads)  # read when NumPy is imported
    import stoker

    make = numpy_step if given.framework == "numpy" else lambda *what: torch_step(*what, given.threads)
    step = make(given.layer, given.batch)
    for _ in range(given.steps):
        step()
        stoker.report(samples=given.batch)


if __name__ == "__main__":
    main()
