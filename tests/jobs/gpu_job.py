"""A training job on a CUDA GPU with a planted fault, for tests/jobs/run.py --gpu and scripts/gpu-day.

Model and data are made up on the spot; what a sample costs is a sleep or a burnt core, so that the fault is what was
planted and nothing else.
"""

import argparse
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

import stoker


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=12)
    p.add_argument("--observation", default="")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--width", type=int, default=8192, help="of the layers")
    p.add_argument("--layers", type=int, default=8)
    p.add_argument("--wait", type=float, default=0, help="seconds that a sample sleeps")
    p.add_argument("--burn", type=float, default=0, help="seconds of a core that a sample takes")
    p.add_argument("--items", type=int, default=0, help="times a step that a value is read from the GPU")
    p.add_argument("--forget", action="store_true", help="holds the GPU and does nothing")
    p.add_argument("--burner", action="store_true", help="no training: keeps the GPU busy until it is ended")
    return p.parse_args()


class Samples(Dataset):
    def __init__(self, a):
        self.a = a
        self.sample = torch.randn(a.width)

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        time.sleep(self.a.wait)
        until = time.thread_time() + self.a.burn
        while time.thread_time() < until:
            pass
        return self.sample


def main():
    a = arguments()
    if not torch.cuda.is_available():
        sys.exit("gpu_job: no CUDA GPU here")
    if a.burner:
        burn()
    train(a)


def burn():
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    while True:
        y = x @ x
        torch.cuda.synchronize()
        del y


def train(a):
    layers = [torch.nn.Linear(a.width, a.width) for _ in range(a.layers)]
    model = torch.nn.Sequential(*layers).cuda()
    if a.forget:
        time.sleep(a.seconds)
        return
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    loader = DataLoader(Samples(a), a.batch, num_workers=a.workers, pin_memory=True)
    until = time.monotonic() + a.seconds
    with stoker.Observer(a.observation, batch=a.batch) as observer:
        for x in observer.batches(loader):
            with observer.step(), torch.autocast("cuda", dtype=torch.bfloat16):
                y = model(x.cuda(non_blocking=True))
                for _ in range(a.items):
                    y = y + y.float().mean().item() * 1e-6
                y.float().square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            if time.monotonic() > until:
                break
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
