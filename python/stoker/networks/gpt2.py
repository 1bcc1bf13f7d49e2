"""GPT-2: learned positions, one projection for queries, keys and values, weights stored transposed."""

from __future__ import annotations

import torch
from torch import nn

from . import parts


class Conv1D(nn.Module):
    """A linear layer whose weight is [inputs, outputs]."""

    def __init__(self, outputs: int, inputs: int):
        super().__init__()
        self.nf, self.nx = outputs, inputs
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], self.nf)


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, attention_dropout: float, dropout: float):
        super().__init__()
        self.width, self.size = width, width // heads
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)
        self.attn_dropout = nn.Dropout(attention_dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        query, key, value = (part.view(*part.shape[:-1], -1, self.size).transpose(1, 2)
                             for part in self.c_attn(x).split(self.width, dim=2))
        out = parts.attention(query, key, value, causal=True, dropout=self.attn_dropout.p if self.training else 0.0,
                              scale=self.size**-0.5)
        return self.resid_dropout(self.c_proj(out))


class _Mlp(nn.Module):
    def __init__(self, width: int, inner: int, act: str, dropout: float):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(inner, width), Conv1D(width, inner)
        self.act, self.dropout = parts.activation(act), nn.Dropout(dropout)

    def forward(self, x):
        x = self.c_fc(x)
        x = self.act(x)
        x = self.c_proj(x)
        return self.dropout(x)


class _Block(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, eps, dropout = config["n_embd"], config.get("layer_norm_epsilon", 1e-5), config.get("resid_pdrop", 0.1)
        self.ln_1 = nn.LayerNorm(width, eps=eps)
        self.attn = _Attention(width, config["n_head"], config.get("attn_pdrop", 0.1), dropout)
        self.ln_2 = nn.LayerNorm(width, eps=eps)
        self.mlp = _Mlp(width, config.get("n_inner") or 4 * width, config.get("activation_function", "gelu_new"), dropout)

    def forward(self, x):
        x = self.attn(self.ln_1(x)) + x
        return x + self.mlp(self.ln_2(x))


class _Decoder(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width = config["n_embd"]
        self.wte = nn.Embedding(config["vocab_size"], width)
        self.wpe = nn.Embedding(config.get("n_positions") or config["n_ctx"], width)
        self.drop = nn.Dropout(config.get("embd_pdrop", 0.1))
        self.h = nn.ModuleList(_Block(config) for _ in range(config["n_layer"]))
        self.ln_f = nn.LayerNorm(width, eps=config.get("layer_norm_epsilon", 1e-5))

    def forward(self, input_ids):
        positions = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        x = self.drop(self.wte(input_ids) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class CausalLanguageModel(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.transformer = _Decoder(config)
        self.lm_head = nn.Linear(config["n_embd"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", True):
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, input_ids, labels):
        scores = self.lm_head(self.transformer(input_ids))
        return parts.Output(loss=parts.next_word_loss(scores, labels), logits=scores)


def causal_language_model(config: dict) -> nn.Module:
    return CausalLanguageModel(config)
