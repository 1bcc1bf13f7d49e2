"""A decoder that trains with flash-attn and Liger, neither of which has to be installed to capture it.

    stoker capture examples/fused_decoder.py:decoder --precision bf16 -o fused.step.gz
    stoker predict fused.step.gz --gpu h100 --batch 8
"""

import torch
from flash_attn import flash_attn_func
from flash_attn.layers.rotary import apply_rotary_emb
from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss, LigerRMSNorm, LigerSwiGLUMLP
from torch import nn


class Shape:
    hidden_size, intermediate_size, layers, heads, vocabulary = 1024, 2816, 8, 16, 32_000


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width = shape.hidden_size
        self.heads = shape.heads
        self.before, self.between = LigerRMSNorm(width), LigerRMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = LigerSwiGLUMLP(shape)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).unbind(2)
        q, k = apply_rotary_emb(q, cos, sin), apply_rotary_emb(k, cos, sin)
        x = x + self.out(flash_attn_func(q, k, v, causal=True).reshape(batch, length, width))
        return x + self.mlp(self.between(x))


class Decoder(nn.Module):
    def __init__(self, shape, length):
        super().__init__()
        half = shape.hidden_size // shape.heads // 2
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden_size)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm, self.head = LigerRMSNorm(shape.hidden_size), nn.Linear(shape.hidden_size, shape.vocabulary, bias=False)
        self.register_buffer("cos", torch.ones(length, half))
        self.register_buffer("sin", torch.zeros(length, half))
        self.loss = LigerFusedLinearCrossEntropyLoss()

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.loss(self.head.weight, self.norm(x).flatten(0, 1), targets.flatten())


def decoder(batch=4, seq_len=2048):
    tokens = torch.zeros(batch, seq_len, dtype=torch.int64)
    return Decoder(Shape, seq_len), (tokens, tokens.clone()), lambda loss: loss
