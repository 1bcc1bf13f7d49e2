"""Trains a small recurrent network to foretell the next letter of real text: the licences that every Debian has.

    python train_text.py --cell gru --batch 64 --lr 0.01

Prints nothing; what it reaches goes to the study by stoker.report.
"""

import argparse
import pathlib

import torch

import stoker

LENGTH = 32  # letters of one sample


def letters(folder: pathlib.Path) -> torch.Tensor:
    text = "".join(file.read_text(errors="ignore") for file in sorted(folder.iterdir()) if file.is_file() and not file.is_symlink())
    return torch.tensor([min(ord(letter), 127) for letter in text], dtype=torch.long)


class Model(torch.nn.Module):
    def __init__(self, cell: str, width: int):
        super().__init__()
        self.embedding = torch.nn.Embedding(128, 16)
        self.recurrent = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[cell](16, width, batch_first=True)
        self.out = torch.nn.Linear(width, 128)

    def forward(self, x):
        return self.out(self.recurrent(self.embedding(x))[0])


def batch_of(text: torch.Tensor, size: int, generator: torch.Generator):
    starts = torch.randint(0, len(text) - LENGTH - 1, (size,), generator=generator)
    rows = torch.stack([text[start:start + LENGTH + 1] for start in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cell", choices=("gru", "lstm"), default="gru")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/common-licenses"))
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    generator = torch.Generator().manual_seed(given.seed)
    text = letters(given.data)
    train, held_out = text[:-20_000], text[-20_000:]
    model = Model(given.cell, given.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=given.lr)
    check_x, check_y = batch_of(held_out, 256, torch.Generator().manual_seed(1))
    for step in range(given.samples // given.batch):
        x, y = batch_of(train, given.batch, generator)
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stoker.report(step=step, samples=given.batch, loss=loss)
    with torch.no_grad():
        right = (model(check_x).argmax(-1) == check_y).float().mean()
    stoker.report(accuracy=right)


if __name__ == "__main__":
    main()
