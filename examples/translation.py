"""A GRU encoder-decoder with a loss, an optimizer and further dimensions of its own, as a stoker.Capture.

    stoker capture examples/translation.py:gru_translation -o translation.step.gz
    stoker capture examples/translation.py:gru_translation --set units=512 --name big -o big.step.gz

`vocab` is declared as a dimension, so one file answers for every vocabulary; `units` is an option with a default, set when
capturing. Dimensions have a degree: 1 where sizes grow in proportion, 2 where something grows with the square.
"""

import torch
from torch import nn

import stoker


class Translator(nn.Module):
    def __init__(self, vocab, units):
        super().__init__()
        self.source, self.target = nn.Embedding(vocab, units), nn.Embedding(vocab, units)
        self.encoder = nn.GRU(units, units, num_layers=2, dropout=0.2, batch_first=True)
        self.decoder = nn.GRU(units, units, num_layers=2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(units, vocab)

    def forward(self, source, previous):
        _, state = self.encoder(self.source(source))
        states, _ = self.decoder(self.target(previous), state)
        return self.head(states)


def word_loss(logits, target):
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def gru_translation(batch=64, seq_len=30, vocab=10_000, units=256):
    model = Translator(vocab, units)

    def tokens():
        return torch.zeros(batch, seq_len, dtype=torch.long)

    return stoker.Capture(
        model,
        inputs=(tokens(), tokens()),
        loss=word_loss,
        targets=(tokens(),),  # what the loss takes after the output; on the device when the step begins
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01),
        dimensions=[stoker.Dimension("seq_len", seq_len, degree=1), stoker.Dimension("vocab", vocab, degree=1)],
        sample={"what": "sentence pair", "tokens": {"seq_len": 1}})
