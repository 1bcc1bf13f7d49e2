"""Vision transformers that classify images."""

from __future__ import annotations

import torch
from torch import nn

from . import parts


class _Patches(nn.Module):
    def __init__(self, channels: int, width: int, patch: int):
        super().__init__()
        self.projection = nn.Conv2d(channels, width, kernel_size=patch, stride=patch)

    def forward(self, pixel_values):
        return self.projection(pixel_values).flatten(2).transpose(1, 2)


class _Embeddings(nn.Module):
    def __init__(self, config: dict, width: int):
        super().__init__()
        side, patch = config.get("image_size", 224), config.get("patch_size", 16)
        self.cls_token = nn.Parameter(torch.empty(1, 1, width))
        self.patch_embeddings = _Patches(config.get("num_channels", 3), width, patch)
        self.position_embeddings = nn.Parameter(torch.empty(1, (side // patch) ** 2 + 1, width))
        self.dropout = nn.Dropout(config.get("hidden_dropout_prob", 0.0))

    def forward(self, pixel_values):
        x = self.patch_embeddings(pixel_values)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = x + self.position_embeddings
        return self.dropout(x)


class _Attention(nn.Module):
    def __init__(self, config: dict, width: int):
        super().__init__()
        bias = config.get("qkv_bias", True)
        self.size = width // config["num_attention_heads"]
        self.dropout = config.get("attention_probs_dropout_prob", 0.0)
        self.q_proj, self.k_proj = nn.Linear(width, width, bias=bias), nn.Linear(width, width, bias=bias)
        self.v_proj, self.o_proj = nn.Linear(width, width, bias=bias), nn.Linear(width, width)

    def forward(self, x):
        shape = (*x.shape[:-1], -1, self.size)
        query, key, value = (part(x).view(shape).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj))
        out = parts.attention(query, key, value, causal=False, dropout=self.dropout if self.training else 0.0,
                              scale=self.size**-0.5)
        return self.o_proj(out)


class _Mlp(nn.Module):
    def __init__(self, config: dict, width: int):
        super().__init__()
        inner = config["intermediate_size"]
        self.activation_fn = parts.activation(config.get("hidden_act", "gelu"))
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        x = self.fc1(x)
        x = self.activation_fn(x)
        return self.fc2(x)


class _Layer(nn.Module):
    def __init__(self, config: dict, width: int, eps: float):
        super().__init__()
        self.attention = _Attention(config, width)
        self.layernorm_before = nn.LayerNorm(width, eps=eps)
        self.layernorm_after = nn.LayerNorm(width, eps=eps)
        self.mlp = _Mlp(config, width)
        self.dropout = nn.Dropout(config.get("hidden_dropout_prob", 0.0))

    def forward(self, x):
        x = self.dropout(self.attention(self.layernorm_before(x))) + x
        return self.dropout(self.mlp(self.layernorm_after(x))) + x


class _Vit(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, eps = config["hidden_size"], config.get("layer_norm_eps", 1e-12)
        self.embeddings = _Embeddings(config, width)
        self.layers = nn.ModuleList(_Layer(config, width, eps) for _ in range(config["num_hidden_layers"]))
        self.layernorm = nn.LayerNorm(width, eps=eps)

    def forward(self, pixel_values):
        x = self.embeddings(pixel_values)
        for layer in self.layers:
            x = layer(x)
        return self.layernorm(x)


class ImageClassifier(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        classes = len(config.get("id2label") or {}) or config.get("num_labels") or 2
        self.vit = _Vit(config)
        self.classifier = nn.Linear(config["hidden_size"], classes)

    def forward(self, pixel_values, labels):
        scores = self.classifier(self.vit(pixel_values)[:, 0, :])
        loss = nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), labels.view(-1))
        return parts.Output(loss=loss, logits=scores)


def image_classifier(config: dict) -> nn.Module:
    return ImageClassifier(config)
