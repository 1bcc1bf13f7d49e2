"""Decoder language models by their shape, as tables name them: plain PyTorch, weights that are never made."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from stoker import Capture


class Attention(nn.Module):
    def __init__(self, hidden, heads, kv_heads, bias, rotary):
        super().__init__()
        self.heads, self.kv_heads, self.size, self.rotary = heads, kv_heads, hidden // heads, rotary
        if rotary:
            self.q = nn.Linear(hidden, heads * self.size, bias=bias)
            self.k = nn.Linear(hidden, kv_heads * self.size, bias=bias)
            self.v = nn.Linear(hidden, kv_heads * self.size, bias=bias)
        else:
            self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * self.size, bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)

    def forward(self, x, turn):
        batch, length, _ = x.shape
        if self.rotary:
            q, k, v = self.q(x), self.k(x), self.v(x)
        else:
            own, shared = self.heads * self.size, self.kv_heads * self.size
            q, k, v = self.qkv(x).split([own, shared, shared], dim=-1)
        q = q.view(batch, length, self.heads, self.size)
        k = k.view(batch, length, self.kv_heads, self.size)
        v = v.view(batch, length, self.kv_heads, self.size)
        if turn is not None:
            q, k = turned(q, turn), turned(k, turn)
        if self.kv_heads != self.heads:
            k, v = (t[:, :, :, None, :].expand(batch, length, self.kv_heads, self.heads // self.kv_heads, self.size)
                    .reshape(batch, length, self.heads, self.size) for t in (k, v))
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, self.heads * self.size))


def turned(x, turn):
    """Rotary positions as a product of complex numbers, in single precision."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn[None, :, None, :]).flatten(3).type_as(x)


class Gated(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Plain(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(hidden, ffn), nn.GELU(), nn.Linear(ffn, hidden)

    def forward(self, x):
        return self.down(self.act(self.up(x)))


def keeping_every_second_product():
    """A choice of what a checkpointed block keeps all the same: attention, and every second matrix product."""
    products = {True: 0, False: 0}

    def policy(context, op, *args, **kwargs):
        keep = "attention" in str(op)
        if op == torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            keep = products[context.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


class Block(nn.Module):
    def __init__(self, hidden, heads, kv_heads, ffn, gated, rotary, selective):
        super().__init__()
        self.selective = selective
        norm = nn.RMSNorm if gated else nn.LayerNorm
        self.attention_norm, self.ffn_norm = norm(hidden), norm(hidden)
        self.attention = Attention(hidden, heads, kv_heads, not gated, rotary)
        self.ffn = Gated(hidden, ffn) if gated else Plain(hidden, ffn)

    def forward(self, x, turn):
        if self.selective:
            return checkpoint(self.run, x, turn, use_reentrant=False, context_fn=keeping_every_second_product)
        return self.run(x, turn)

    def run(self, x, turn):
        x = x + self.attention(self.attention_norm(x), turn)
        return x + self.ffn(self.ffn_norm(x))


class Decoder(nn.Module):
    def __init__(self, shape, seq_len, selective):
        super().__init__()
        hidden, gated, rotary = shape["hidden"], "gated" in shape["activation"], shape["positions"] == "rotary"
        self.tokens = nn.Embedding(shape["vocab"], hidden)
        self.positions = None if rotary else nn.Embedding(seq_len, hidden)
        if rotary:
            half = hidden // shape["heads"] // 2
            self.register_buffer("turn", torch.zeros(seq_len, half, dtype=torch.complex64), persistent=False)
        self.blocks = nn.ModuleList(Block(hidden, shape["heads"], shape["kv_heads"], shape["ffn"], gated, rotary,
                                          selective)
                                    for _ in range(shape["layers"]))
        self.norm = (nn.RMSNorm if gated else nn.LayerNorm)(hidden)
        self.head = None if shape["tied_embeddings"] else nn.Linear(hidden, shape["vocab"], bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        turn = self.turn if self.positions is None else None
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x, turn)
        x = self.norm(x)
        return F.linear(x, self.tokens.weight) if self.head is None else self.head(x)


class Loss:
    """Cross entropy over all positions; of a copy in single precision where `upcast` says so."""

    def __init__(self, upcast):
        self.upcast = upcast

    def __call__(self, logits, targets):
        logits = logits.flatten(0, 1)
        return F.cross_entropy(logits.float() if self.upcast else logits, targets.flatten())


def decoder(batch=2, seq_len=2048, shape=None, upcast=False, selective=False, compile=False):
    """With `compile` each block is under torch.compile by itself, as FSDP over blocks wants it; with `selective` each is
    computed again in the backward but for its attention and every second product."""
    tokens = torch.zeros(batch, seq_len, dtype=torch.int64)
    model = Decoder(shape, seq_len, selective)
    for block in model.blocks if compile else ():
        block.compile()
    return Capture(model, tokens, loss=Loss(upcast), targets=(torch.zeros_like(tokens),))
