"""Fine-tuning GPT-2 large with LoRA adapters made by hand, beside fine-tuning all of it.

    stoker predict examples/lora.py:full --gpu t4 --precision amp-fp16 --batch 2
    stoker predict examples/lora.py:lora --gpu t4 --precision amp-fp16 --batch 2

An adapter adds two thin matrices to a linear layer whose own weight stays as it is (Hu et al., "LoRA: Low-Rank Adaptation of
Large Language Models", 2021). Nothing is said to Stoker about it: what is frozen gets neither gradient nor optimizer state
because PyTorch gives it none, and the optimizer that is returned shows what is updated. The first does not fit a T4, the
second needs 10.5 GiB. Models that peft.get_peft_model() made are captured in the same way.
"""

import torch
from torch import nn

import stoker


class Adapted(nn.Module):
    """A frozen layer plus B A x / rank, with A and B trained."""

    def __init__(self, layer, inputs, outputs, rank, dropout):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.dropout = nn.Dropout(dropout)
        self.down = nn.Linear(inputs, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False)
        self.scale = 1 / rank

    def forward(self, x):
        return self.layer(x) + self.up(self.down(self.dropout(x))) * self.scale


def _gpt2(layers, width, heads):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=width, n_head=heads, use_cache=False))


def _step(model, batch, seq_len):
    trained = [p for p in model.parameters() if p.requires_grad]
    ids = torch.zeros(batch, seq_len, dtype=torch.long)
    return stoker.Capture(model, {"input_ids": ids, "labels": ids.clone()},
                          optimizer=torch.optim.AdamW(trained, lr=1e-4), clip=True,
                          sample={"what": "sequence", "tokens": {"seq_len": 1}})


def full(batch=2, seq_len=512, layers=36, width=1280, heads=20):
    return _step(_gpt2(layers, width, heads), batch, seq_len)


def lora(batch=2, seq_len=512, layers=36, width=1280, heads=20, rank=8, dropout=0.05):
    model = _gpt2(layers, width, heads).requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn = Adapted(block.attn.c_attn, width, 3 * width, rank, dropout)
    return _step(model, batch, seq_len)
