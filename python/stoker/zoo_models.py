"""The models of the zoo that are not torchvision's, written as anyone would write a capture function.

Capture one with `stoker capture zoo_models.py:gpt2 -o gpt2.step.gz`. Each function returns a module and example inputs;
its parameters `batch` and `seq_len`, and what it declares itself, become dimensions of the step.
"""

from __future__ import annotations

import torch
from torch import nn

from stoker.polynomial import Dimension
from stoker.protocol import Capture

LANGUAGE_SEQ_LEN = 128
TRANSLATION_SEQ_LEN = 32
TRANSLATION_VOCAB = 8000


def _tokens(batch: int, length: int) -> torch.Tensor:
    return torch.zeros(batch, length, dtype=torch.long)


# -- small CNNs ------------------------------------------------------------------------------------------------------


def cnn_mnist(batch=64):
    """Two convolutions and two linear layers for 28x28 grey images (1.2 million parameters)."""
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))
    return Capture(model, torch.empty(batch, 1, 28, 28), sample={"what": "image"})


def cnn_cifar10(batch=64):
    """Three stages of two convolutions each for 32x32 colour images."""

    def stage(channels_in, channels):
        return [nn.Conv2d(channels_in, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.MaxPool2d(2), nn.Dropout(0.25)]

    model = nn.Sequential(*stage(3, 32), *stage(32, 64), *stage(64, 128), nn.Flatten(),
                          nn.Linear(128 * 4 * 4, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))
    return Capture(model, torch.empty(batch, 3, 32, 32), sample={"what": "image"})


# -- recurrent translation -------------------------------------------------------------------------------------------


class BidirectionalGru(nn.Module):
    """Embedding, one bidirectional GRU, and a linear layer to the target vocabulary at each position."""

    def __init__(self, vocab: int, units: int = 128):
        super().__init__()
        self.embedding = nn.Embedding(vocab, units)
        self.gru = nn.GRU(units, units, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * units, vocab)

    def forward(self, source):
        states, _ = self.gru(self.embedding(source))
        return self.head(states)


class GruSeq2Seq(nn.Module):
    """A GRU encoder whose last state starts a GRU decoder; the decoder is fed the true previous words."""

    def __init__(self, vocab: int, units: int = 128):
        super().__init__()
        self.source_embedding = nn.Embedding(vocab, units)
        self.target_embedding = nn.Embedding(vocab, units)
        self.encoder = nn.GRU(units, units, batch_first=True)
        self.decoder = nn.GRU(units, units, batch_first=True)
        self.head = nn.Linear(units, vocab)

    def forward(self, source, previous):
        _, state = self.encoder(self.source_embedding(source))
        states, _ = self.decoder(self.target_embedding(previous), state)
        return self.head(states)


def token_loss(logits, target):
    """Mean cross-entropy over all positions."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def _translation(model, inputs, batch, seq_len, vocab):
    return Capture(model, inputs, loss=token_loss, targets=(_tokens(batch, seq_len),),
                   dimensions=[Dimension("seq_len", seq_len, degree=1), Dimension("vocab", vocab, degree=1)],
                   sample={"what": "sentence pair", "tokens": {"seq_len": 1}})


def gru_bi128(batch=64, seq_len=TRANSLATION_SEQ_LEN, vocab=TRANSLATION_VOCAB):
    return _translation(BidirectionalGru(vocab), _tokens(batch, seq_len), batch, seq_len, vocab)


def gru_seq2seq(batch=64, seq_len=TRANSLATION_SEQ_LEN, vocab=TRANSLATION_VOCAB):
    inputs = (_tokens(batch, seq_len), _tokens(batch, seq_len))
    return _translation(GruSeq2Seq(vocab), inputs, batch, seq_len, vocab)


# -- transformers, from configurations: nothing is downloaded ----------------------------------------------------------


def _language(model, batch, seq_len):
    inputs = {"input_ids": _tokens(batch, seq_len), "labels": _tokens(batch, seq_len)}
    return Capture(model, inputs, sample={"what": "sequence", "tokens": {"seq_len": 1}})


def bert_base(batch=16, seq_len=LANGUAGE_SEQ_LEN):
    """BERT-base with its masked-word head."""
    from transformers import BertConfig, BertForMaskedLM

    return _language(BertForMaskedLM(BertConfig()), batch, seq_len)


def gpt2(batch=8, seq_len=LANGUAGE_SEQ_LEN):
    """The 124-million-parameter GPT-2; it keeps its keys and values (use_cache), as it does by default."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return _language(GPT2LMHeadModel(GPT2Config()), batch, seq_len)


def t5_small(batch=16, seq_len=LANGUAGE_SEQ_LEN):
    """T5-small; source and target are equally long."""
    from transformers import T5Config, T5ForConditionalGeneration

    return _language(T5ForConditionalGeneration(T5Config(decoder_start_token_id=0)), batch, seq_len)


def llama_1b(batch=4, seq_len=512):
    """A decoder of 1.24 billion parameters with grouped-query attention, in the proportions of Llama 3.2 1B."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                         num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072,
                         tie_word_embeddings=True, use_cache=False)
    return _language(LlamaForCausalLM(config), batch, seq_len)
