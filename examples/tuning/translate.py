"""A GRU that translates word by word, on the CPU: what the studies of recurrent networks tuned, small.

    python translate.py --source train.en --target train.fr --batch 64 --lr 0.001

--model brnn is a bidirectional GRU of 128 units that says a word of the target for each place of the source; encdec is an encoder
and a decoder that is told the words before (teacher forcing). Files are text, one sentence a line, gzip or plain. Accuracy is of words
of sentences that were held out.
"""

import argparse
import collections
import gzip
import re

import torch
from torch import nn

import stoker

WORDS = re.compile(r"\w+|[^\w\s]")


def read(path, count, length, size):
    """Sentences as rows of word numbers: 0 is padding, 1 a word that is not among the `size` most frequent."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        lines = [WORDS.findall(line.lower())[:length] for _, line in zip(range(count), file)]
    counts = collections.Counter(word for line in lines for word in line)
    number = {word: i + 2 for i, (word, _) in enumerate(counts.most_common(size - 2))}
    rows = [[number.get(word, 1) for word in line] + [0] * (length - len(line)) for line in lines]
    return torch.tensor(rows)


class Bidirectional(nn.Module):
    def __init__(self, size, units=128):
        super().__init__()
        self.embedding = nn.Embedding(size, units)
        self.rnn = nn.GRU(units, units, batch_first=True, bidirectional=True)
        self.words = nn.Linear(2 * units, size)

    def forward(self, source, target):
        return self.words(self.rnn(self.embedding(source))[0])


class EncoderDecoder(nn.Module):
    def __init__(self, size, units=128):
        super().__init__()
        self.source, self.target = nn.Embedding(size, units), nn.Embedding(size, units)
        self.encoder, self.decoder = nn.GRU(units, units, batch_first=True), nn.GRU(units, units, batch_first=True)
        self.words = nn.Linear(units, size)

    def forward(self, source, target):
        state = self.encoder(self.source(source))[1]
        before = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], 1)
        return self.words(self.decoder(self.target(before), state)[0])


def settings(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--model", choices=["brnn", "encdec"], default="brnn")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(words)


def train(a, source, target, report):
    """Trains as `a` says; `report` is told of each step (samples=, loss=) and each evaluation (accuracy=), and ends it by True."""
    torch.manual_seed(a.seed)
    held_out = len(source) // 5
    learned = int((len(source) - held_out) * stoker.share())
    model = (Bidirectional if a.model == "brnn" else EncoderDecoder)(a.words)
    optimizer = torch.optim.Adam(model.parameters(), lr=a.lr)
    loss_of = nn.CrossEntropyLoss(ignore_index=0)
    seen = 0  # steps are counted in samples, so that trials of different batches can be compared
    for _ in range(a.epochs):
        for rows in torch.randperm(learned).split(a.batch):
            x, y = source[held_out + rows], target[held_out + rows]
            loss = loss_of(model(x, y).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(rows)
            if report(step=seen, samples=len(rows), loss=loss):
                return
        with torch.no_grad():
            y = target[:held_out]
            right = (model(source[:held_out], y).argmax(-1) == y)[y > 0].float().mean()
        if report(step=seen, accuracy=right):
            return


def main():
    a = settings()
    torch.set_num_threads(1)
    source, target = read(a.source, a.sentences, a.length, a.words), read(a.target, a.sentences, a.length, a.words)

    def report(**what):
        if "accuracy" in what:
            print(f"{what['step']} samples: accuracy {what['accuracy']:.4f}", flush=True)
        return stoker.report(**what)

    train(a, source, target, report)


if __name__ == "__main__":
    main()
