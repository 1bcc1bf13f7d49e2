"""Decoders with rotary positions, RMS norms and a gated layer: Llama, Mistral, Qwen 2 and 3, Gemma."""

from __future__ import annotations

from torch import nn

from . import parts


class _Attention(nn.Module):
    def __init__(self, config: dict, width: int, heads: int, groups: int, size: int):
        super().__init__()
        kind = config["model_type"]
        bias = kind == "qwen2" or bool(config.get("attention_bias", False))
        self.size, self.grouped = size, groups < heads
        self.dropout = config.get("attention_dropout") or 0.0
        self.q_proj = nn.Linear(width, heads * size, bias=bias)
        self.k_proj = nn.Linear(width, groups * size, bias=bias)
        self.v_proj = nn.Linear(width, groups * size, bias=bias)
        self.o_proj = nn.Linear(heads * size, width, bias=bias and kind != "qwen2")
        if kind == "qwen3":
            self.q_norm = parts.RmsNorm(size, config.get("rms_norm_eps", 1e-6))
            self.k_norm = parts.RmsNorm(size, config.get("rms_norm_eps", 1e-6))
        self.has_norms = kind == "qwen3"

    def forward(self, x, cos, sin):
        shape = (*x.shape[:-1], -1, self.size)
        query, key = self.q_proj(x).view(shape), self.k_proj(x).view(shape)
        if self.has_norms:
            query, key = self.q_norm(query), self.k_norm(key)
        value = self.v_proj(x).view(shape).transpose(1, 2)
        query, key = parts.turned(query.transpose(1, 2), cos, sin), parts.turned(key.transpose(1, 2), cos, sin)
        out = parts.attention(query, key, value, causal=True, dropout=self.dropout if self.training else 0.0,
                              grouped=self.grouped, scale=self.size**-0.5)
        return self.o_proj(out)


class _Gated(nn.Module):
    def __init__(self, config: dict, width: int):
        super().__init__()
        inner, bias = config["intermediate_size"], bool(config.get("mlp_bias", False))
        self.gate_proj = nn.Linear(width, inner, bias=bias)
        self.up_proj = nn.Linear(width, inner, bias=bias)
        self.down_proj = nn.Linear(inner, width, bias=bias)
        self.act_fn = parts.activation(config.get("hidden_activation") or config.get("hidden_act") or "silu")

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class _Layer(nn.Module):
    def __init__(self, config: dict, width: int, heads: int, groups: int, size: int):
        super().__init__()
        gemma, eps = config["model_type"] == "gemma", config.get("rms_norm_eps", 1e-6)
        self.self_attn = _Attention(config, width, heads, groups, size)
        self.mlp = _Gated(config, width)
        self.input_layernorm = parts.RmsNorm(width, eps, gemma)
        self.post_attention_layernorm = parts.RmsNorm(width, eps, gemma)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class _Decoder(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, heads = config["hidden_size"], config["num_attention_heads"]
        groups = config.get("num_key_value_heads") or heads
        size = config.get("head_dim") or width // heads
        self.gemma = config["model_type"] == "gemma"
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(_Layer(config, width, heads, groups, size) for _ in range(config["num_hidden_layers"]))
        self.norm = parts.RmsNorm(width, config.get("rms_norm_eps", 1e-6), self.gemma)
        self.rotary_emb = parts.Rotary(size)

    def forward(self, input_ids):
        x = self.embed_tokens(input_ids)
        if self.gemma:
            x = x * self.embed_tokens.embedding_dim**0.5
        cos, sin = self.rotary_emb(x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class CausalLanguageModel(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.model = _Decoder(config)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", config["model_type"] == "gemma"):
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids, labels):
        scores = self.lm_head(self.model(input_ids))
        return parts.Output(loss=parts.next_word_loss(scores, labels), logits=scores)


def causal_language_model(config: dict) -> nn.Module:
    return CausalLanguageModel(config)
