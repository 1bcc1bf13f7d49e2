"""A training that only allocates, as a small network would: what record_snapshots.py runs for the scenario `training`."""

import torch

MIB = 1 << 20
BYTES = {"dtype": torch.uint8, "device": "cuda"}


class Block:
    def __init__(self, width: int) -> None:
        self.weight = torch.empty(width * MIB, **BYTES)

    def forward(self, batch: int) -> list:
        hidden = torch.empty(batch * 3 * MIB // 4, **BYTES)
        scale = torch.empty(batch * MIB // 16, **BYTES)
        output = torch.empty(batch * 2 * MIB // 5, **BYTES)
        return [hidden, scale, output]


class Adam:
    def __init__(self, blocks: list) -> None:
        self.state = []
        for block in blocks:
            self.state.append(torch.empty_like(block.weight))
            self.state.append(torch.empty_like(block.weight))


def train_step(blocks: list, batch: int) -> None:
    saved = [block.forward(batch) for block in blocks]
    gradients = []
    for block, kept in zip(reversed(blocks), reversed(saved)):
        gradients.append(torch.empty_like(block.weight))
        kept.clear()


def main() -> None:
    blocks = [Block(5 + i) for i in range(8)]
    for step in range(3):
        train_step(blocks, batch=16 + 8 * step)
        if step == 0:
            optimizer = Adam(blocks)
    del optimizer.state[::3]  # leaves holes
    train_step(blocks, batch=64)
