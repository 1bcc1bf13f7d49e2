"""Whisper: an encoder of spectrograms and a decoder of words, as transformers trains it from labels."""

from __future__ import annotations

import torch
from torch import nn

from . import parts


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, causal: bool):
        super().__init__()
        self.size, self.dropout, self.causal = width // heads, dropout, causal
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj, self.q_proj, self.out_proj = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, others=None):
        shape = (x.shape[0], -1, x.shape[-1] // self.size, self.size)
        query = (self.q_proj(x) * self.size**-0.5).view(shape).transpose(1, 2).contiguous()
        others = x if others is None else others
        key = self.k_proj(others).view(shape).transpose(1, 2).contiguous()
        value = self.v_proj(others).view(shape).transpose(1, 2).contiguous()
        out = parts.attention(query, key, value, causal=self.causal, dropout=self.dropout if self.training else 0.0, scale=1.0)
        return self.out_proj(out)


class _Layer(nn.Module):
    def __init__(self, config: dict, heads: int, inner: int, decodes: bool):
        super().__init__()
        width, attention_dropout = config["d_model"], config.get("attention_dropout", 0.0)
        self.dropout, self.activation_dropout = config.get("dropout", 0.0), config.get("activation_dropout", 0.0)
        self.self_attn = _Attention(width, heads, attention_dropout, causal=decodes)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        if decodes:
            self.encoder_attn = _Attention(width, heads, attention_dropout, causal=False)
            self.encoder_attn_layer_norm = nn.LayerNorm(width)
        self.activation_fn = parts.activation(config.get("activation_function", "gelu"))
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width)

    def _dropped(self, x, share):
        return nn.functional.dropout(x, p=share, training=self.training)

    def forward(self, x, states=None):
        x = x + self._dropped(self.self_attn(self.self_attn_layer_norm(x)), self.dropout)
        if states is not None:
            x = x + self._dropped(self.encoder_attn(self.encoder_attn_layer_norm(x), states), self.dropout)
        inner = self.activation_fn(self.fc1(self.final_layer_norm(x)))
        inner = self.fc2(self._dropped(inner, self.activation_dropout))
        return x + self._dropped(inner, self.dropout)


class _Encoder(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width = config["d_model"]
        self.dropout = config.get("dropout", 0.0)
        self.conv1 = nn.Conv1d(config.get("num_mel_bins", 80), width, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(width, width, kernel_size=3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(config.get("max_source_positions", 1500), width)
        self.embed_positions.requires_grad_(False)  # sinusoids, which are not trained
        self.layers = nn.ModuleList(_Layer(config, config["encoder_attention_heads"], config["encoder_ffn_dim"], False)
                                    for _ in range(config["encoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, features):
        x = nn.functional.gelu(self.conv1(features))
        x = nn.functional.gelu(self.conv2(x)).permute(0, 2, 1)
        positions = torch.arange(self.embed_positions.num_embeddings, device=x.device)
        x = x + self.embed_positions(positions)
        x = nn.functional.dropout(x, p=self.dropout, training=self.training)
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class _Decoder(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width = config["d_model"]
        self.dropout = config.get("dropout", 0.0)
        self.embed_tokens = nn.Embedding(config["vocab_size"], width, config.get("pad_token_id", 0))
        self.embed_positions = nn.Embedding(config.get("max_target_positions", 448), width)
        self.layers = nn.ModuleList(_Layer(config, config["decoder_attention_heads"], config["decoder_ffn_dim"], True)
                                    for _ in range(config["decoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, input_ids, states):
        x = self.embed_tokens(input_ids)
        positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0).repeat(x.shape[0], 1)
        x = x + self.embed_positions.weight[positions]
        x = nn.functional.dropout(x, p=self.dropout, training=self.training)
        for layer in self.layers:
            x = layer(x, states)
        return self.layer_norm(x)


class _Whisper(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.encoder, self.decoder = _Encoder(config), _Decoder(config)


class SpeechToText(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.model = _Whisper(config)
        self.proj_out = nn.Linear(config["d_model"], config["vocab_size"], bias=False)
        self.proj_out.weight = self.model.decoder.embed_tokens.weight

    def forward(self, input_features, labels):
        words = labels.new_zeros(labels.shape)  # the labels, one further, behind a word that starts
        words[:, 1:] = labels[:, :-1].clone()
        words[:, 0] = 0
        words.masked_fill_(words == parts.IGNORED_LABEL, 0)
        # What is answered with lives as long as the answer: under autocast nothing else keeps the encoder's FP32 states.
        states = self.model.encoder(input_features)
        decoded = self.model.decoder(words, states)
        scores = self.proj_out(decoded)
        loss = nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), labels.reshape(-1))
        return parts.Output(loss=loss, logits=scores, encoder_last_hidden_state=states)


def speech_to_text(config: dict) -> nn.Module:
    return SpeechToText(config)
