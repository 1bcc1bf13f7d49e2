"""Records where the time of a small training loop goes.

    python examples/observe_loop.py [--slow-loader]
    stoker observation observe_loop.obs.jsonl

It trains a small CNN on made-up images on the CPU, in seconds. --slow-loader lets each sample take 2 ms to make, so that the loop
waits for its data and the recording says so.
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import stoker


class Images(Dataset):
    def __init__(self, count: int, seconds: float):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.seconds)
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 32, 32, generator=generator), index % 10


def small_cnn():
    return nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slow-loader", action="store_true", help="2 ms a sample")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()

    model = small_cnn()
    optimizer = torch.optim.AdamW(model.parameters())
    data = Images(1024, 0.002 if options.slow_loader else 0.0)
    loader = DataLoader(data, batch_size=16, shuffle=True)
    held_out = DataLoader(Images(64, 0.0), batch_size=16)

    observer = stoker.Observer("observe_loop.obs.jsonl").attach(model, optimizer)
    for _ in range(options.epochs):
        model.train()
        for images, labels in observer.batches(loader):
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in held_out)
        print(f"{right} of {len(held_out.dataset)} right")
    observer.close()
    print(f"stoker observation {observer.path}")


if __name__ == "__main__":
    main()
