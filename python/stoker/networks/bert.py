"""BERT with its masked-word head."""

from __future__ import annotations

import torch
from torch import nn

from . import parts


class _Embeddings(nn.Module):
    def __init__(self, config: dict, width: int, eps: float, dropout: float):
        super().__init__()
        positions = config.get("max_position_embeddings", 512)
        self.word_embeddings = nn.Embedding(config["vocab_size"], width, padding_idx=config.get("pad_token_id", 0))
        self.position_embeddings = nn.Embedding(positions, width)
        self.token_type_embeddings = nn.Embedding(config.get("type_vocab_size", 2), width)
        self.LayerNorm = nn.LayerNorm(width, eps=eps)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("position_ids", torch.empty(1, positions, dtype=torch.long), persistent=False)
        self.register_buffer("token_type_ids", torch.zeros(1, positions, dtype=torch.long), persistent=False)

    def forward(self, input_ids):
        batch, length = input_ids.shape
        positions = self.position_ids[:, :length]
        types = torch.gather(self.token_type_ids.expand(1, -1), dim=1, index=positions).expand(batch, length)
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(types)
        x = x + self.position_embeddings(positions)
        x = self.LayerNorm(x)
        return self.dropout(x)


class _SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.size = width // heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        shape = (*x.shape[:-1], -1, self.size)
        query, key, value = (part(x).view(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        return parts.attention(query, key, value, causal=False, dropout=self.dropout.p if self.training else 0.0,
                               scale=self.size**-0.5)


class _Output(nn.Module):
    """A projection back to the width, added to where the branch began and normalised."""

    def __init__(self, inputs: int, width: int, eps: float, dropout: float):
        super().__init__()
        self.dense = nn.Linear(inputs, width)
        self.LayerNorm = nn.LayerNorm(width, eps=eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, before):
        x = self.dense(x)
        x = self.dropout(x)
        return self.LayerNorm(x + before)


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, eps: float, attention_dropout: float, dropout: float):
        super().__init__()
        self.self = _SelfAttention(width, heads, attention_dropout)
        self.output = _Output(width, width, eps, dropout)

    def forward(self, x):
        return self.output(self.self(x), x)


class _Intermediate(nn.Module):
    def __init__(self, width: int, inner: int, act: str):
        super().__init__()
        self.dense, self.intermediate_act_fn = nn.Linear(width, inner), parts.activation(act)

    def forward(self, x):
        x = self.dense(x)
        return self.intermediate_act_fn(x)


class _Layer(nn.Module):
    def __init__(self, config: dict, width: int, eps: float, dropout: float):
        super().__init__()
        inner = config["intermediate_size"]
        self.attention = _Attention(width, config["num_attention_heads"], eps,
                                    config.get("attention_probs_dropout_prob", 0.1), dropout)
        self.intermediate = _Intermediate(width, inner, config.get("hidden_act", "gelu"))
        self.output = _Output(inner, width, eps, dropout)

    def forward(self, x):
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class _Encoder(nn.Module):
    def __init__(self, config: dict, width: int, eps: float, dropout: float):
        super().__init__()
        self.layer = nn.ModuleList(_Layer(config, width, eps, dropout) for _ in range(config["num_hidden_layers"]))

    def forward(self, x):
        for layer in self.layer:
            x = layer(x)
        return x


class _Bert(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, eps = config["hidden_size"], config.get("layer_norm_eps", 1e-12)
        dropout = config.get("hidden_dropout_prob", 0.1)
        self.embeddings = _Embeddings(config, width, eps, dropout)
        self.encoder = _Encoder(config, width, eps, dropout)

    def forward(self, input_ids):
        return self.encoder(self.embeddings(input_ids))


class _Transform(nn.Module):
    def __init__(self, width: int, act: str, eps: float):
        super().__init__()
        self.dense, self.transform_act_fn = nn.Linear(width, width), parts.activation(act)
        self.LayerNorm = nn.LayerNorm(width, eps=eps)

    def forward(self, x):
        x = self.dense(x)
        x = self.transform_act_fn(x)
        return self.LayerNorm(x)


class _Predictions(nn.Module):
    def __init__(self, config: dict, words):
        super().__init__()
        width = config["hidden_size"]
        self.transform = _Transform(width, config.get("hidden_act", "gelu"), config.get("layer_norm_eps", 1e-12))
        self.decoder = nn.Linear(width, config["vocab_size"])
        if config.get("tie_word_embeddings", True):
            self.decoder.weight = words
        self.bias = self.decoder.bias  # one tensor by two names, as checkpoints have it

    def forward(self, x):
        x = self.transform(x)
        return self.decoder(x)


class _Head(nn.Module):
    def __init__(self, config: dict, words):
        super().__init__()
        self.predictions = _Predictions(config, words)

    def forward(self, x):
        return self.predictions(x)


class MaskedLanguageModel(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.bert = _Bert(config)
        self.cls = _Head(config, self.bert.embeddings.word_embeddings.weight)

    def forward(self, input_ids, labels):
        scores = self.cls(self.bert(input_ids))
        loss = nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), labels.view(-1))
        return parts.Output(loss=loss, logits=scores)


def masked_language_model(config: dict) -> nn.Module:
    return MaskedLanguageModel(config)
