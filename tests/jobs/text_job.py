"""Another training job than job.py: lines of text, split by a tokenizer in Python, as an IterableDataset.

Written after the rules of the diagnosis stood. What differs: workers share a stream, samples are Python objects that a
collate function pads, gradients are accumulated, and the loop reads its loss now and then.
"""

import argparse
import contextlib
import time

import torch
from marks import marks_of
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import stoker

WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or had an they".split()


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--observation", required=True)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--tokenize", type=int, default=1, help="times that a line is split")
    p.add_argument("--remote", type=float, default=0, help="seconds until a line comes from its server")
    p.add_argument("--device-step", type=float, default=0.04)
    p.add_argument("--log", type=float, default=0, help="seconds that writing to a far log takes, every 25 steps")
    p.add_argument("--keep-losses", type=int, default=0, help="numbers kept with every step")
    p.add_argument("--silent", action="store_true")
    p.add_argument("--traceml", action="store_true", help="marks steps for TraceML, under `traceml run`")
    return p.parse_args()


class Lines(IterableDataset):
    def __init__(self, a):
        self.a = a

    def __iter__(self):
        worker = get_worker_info()
        number = worker.id if worker else 0
        stride = worker.num_workers if worker else 1
        while True:
            time.sleep(self.a.remote)
            line = " ".join(WORDS[(number * 7 + i * i) % len(WORDS)] for i in range(20 + number % 60))
            for _ in range(self.a.tokenize):
                tokens = [hash(word) % 5000 for word in line.replace("th", "t h").split()]
            yield tokens
            number += stride


def pad(lines):
    longest = max(map(len, lines))
    return torch.tensor([line + [0] * (longest - len(line)) for line in lines])


class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.EmbeddingBag(5000, 32, mode="mean")
        self.out = torch.nn.Linear(32, 2)

    def forward(self, x):
        return self.out(self.table(x))


def main():
    a = arguments()
    torch.set_num_threads(1)
    model = Mean()
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(Lines(a), a.batch, num_workers=a.workers, collate_fn=pad)
    observer = contextlib.nullcontext() if a.silent else stoker.Observer(a.observation, batch=a.batch)
    marks = marks_of(a, model)
    kept, until = [], time.monotonic() + a.seconds
    with observer as seen:
        for number, batch in enumerate(loader if a.silent else seen.batches(loader)):
            with contextlib.nullcontext() if a.silent else seen.step(), marks():
                end = time.monotonic() + a.device_step
                loss = torch.nn.functional.cross_entropy(model(batch), batch[:, 0] % 2)
                (loss / 4).backward()
                if number % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
                time.sleep(max(0.0, end - time.monotonic()))
                if a.keep_losses:
                    kept.append([float(i) for i in range(a.keep_losses)])
            if a.log and number % 25 == 24:
                time.sleep(a.log)
            if time.monotonic() > until:
                return


if __name__ == "__main__":
    main()
