"""GPT-NeoX and Pythia: rotary positions on a part of each head, attention and feed-forward side by side."""

from __future__ import annotations

from torch import nn

from . import parts


class _Attention(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, bias = config["hidden_size"], config.get("attention_bias", True)
        self.size = width // config["num_attention_heads"]
        self.dropout = config.get("attention_dropout") or 0.0
        self.query_key_value = nn.Linear(width, 3 * width, bias=bias)
        self.dense = nn.Linear(width, width, bias=bias)

    def forward(self, x, cos, sin):
        packed = self.query_key_value(x).view(*x.shape[:-1], -1, 3 * self.size).transpose(1, 2)
        query, key, value = packed.chunk(3, dim=-1)
        query, key = parts.turned(query, cos, sin), parts.turned(key, cos, sin)
        out = parts.attention(query, key, value, causal=True, dropout=self.dropout if self.training else 0.0,
                              scale=self.size**-0.5)
        return self.dense(out)


class _Mlp(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.dense_h_to_4h, self.dense_4h_to_h = nn.Linear(width, inner), nn.Linear(inner, width)
        self.act = parts.activation(config.get("hidden_act", "gelu"))

    def forward(self, x):
        x = self.dense_h_to_4h(x)
        x = self.act(x)
        return self.dense_4h_to_h(x)


class _Layer(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, eps, dropout = config["hidden_size"], config.get("layer_norm_eps", 1e-5), config.get("hidden_dropout", 0.0)
        self.parallel = config.get("use_parallel_residual", True)
        self.input_layernorm = nn.LayerNorm(width, eps=eps)
        self.post_attention_layernorm = nn.LayerNorm(width, eps=eps)
        self.post_attention_dropout, self.post_mlp_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.attention, self.mlp = _Attention(config), _Mlp(config)

    def forward(self, x, cos, sin):
        attended = self.post_attention_dropout(self.attention(self.input_layernorm(x), cos, sin))
        if self.parallel:
            return self.post_mlp_dropout(self.mlp(self.post_attention_layernorm(x))) + attended + x
        attended = attended + x
        return self.post_mlp_dropout(self.mlp(self.post_attention_layernorm(attended))) + attended


class _Decoder(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width, size = config["hidden_size"], config["hidden_size"] // config["num_attention_heads"]
        rope = config.get("rope_parameters") or {}
        share = config.get("rotary_pct") or rope.get("partial_rotary_factor") or 0.25
        self.embed_in = nn.Embedding(config["vocab_size"], width)
        self.emb_dropout = nn.Dropout(config.get("hidden_dropout", 0.0))
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config["num_hidden_layers"]))
        self.final_layer_norm = nn.LayerNorm(width, eps=config.get("layer_norm_eps", 1e-5))
        self.rotary_emb = parts.Rotary(int(size * share))

    def forward(self, input_ids):
        x = self.emb_dropout(self.embed_in(input_ids))
        cos, sin = self.rotary_emb(x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.final_layer_norm(x)


class CausalLanguageModel(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.gpt_neox = _Decoder(config)
        self.embed_out = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", False):
            self.embed_out.weight = self.gpt_neox.embed_in.weight

    def forward(self, input_ids, labels):
        scores = self.embed_out(self.gpt_neox(input_ids))
        return parts.Output(loss=parts.next_word_loss(scores, labels), logits=scores)


def causal_language_model(config: dict) -> nn.Module:
    return CausalLanguageModel(config)
