"""Two training processes with gloo, each with a DataLoader of its own, started by multiprocessing as mp.spawn does.

Written after the rules of the diagnosis stood: one rank's loader may be slower than the other's, and both wait for it.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from marks import marks_of
from torch.utils.data import DataLoader, Dataset

import stoker


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--observation", required=True)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--wait", type=float, default=0, help="seconds that a sample sleeps")
    p.add_argument("--slow-rank", type=float, default=0, help="seconds that rank 1 sleeps each step, as a slower GPU does")
    p.add_argument("--step", type=float, default=0.04)
    p.add_argument("--traceml", action="store_true", help="marks steps for TraceML, under `traceml run`")
    p.add_argument("--port", type=int, default=29517)
    return p.parse_args()


class Samples(Dataset):
    def __init__(self, wait):
        self.wait = wait

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(self.wait)
        return torch.full((64,), float(index % 10))


def rank_main(rank, a):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.Linear(64, 10)
    loader = DataLoader(Samples(a.wait), 8, num_workers=a.workers)
    marks = marks_of(a, model)
    going = torch.ones(1)
    until = time.monotonic() + a.seconds
    with stoker.Observer(a.observation, batch=8) as observer:
        for batch in observer.batches(loader):
            with observer.step(), marks():
                model(batch).square().mean().backward()
                time.sleep(a.step + (a.slow_rank if rank == 1 else 0))
                for p in model.parameters():
                    dist.all_reduce(p.grad)
                    p.grad = None
                going.fill_(float(time.monotonic() < until))
                dist.all_reduce(going, op=dist.ReduceOp.MIN)
            if going.item() == 0:
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    settings = arguments()
    mp.spawn(rank_main, (settings,), nprocs=2)
