"""The models whose steps lie in this folder: each plain, and with torch.utils.checkpoint around its blocks.

`python3 tests/rewrites/capture.py` writes the step files anew. src/rewrite/checkpoint_test.cc and evaluation_test.cc
rewrite the plain steps and compare them with the others; src/rewrite/compile has the compiled ones, fused_loss_test.cc
the smoothed one.
"""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from stoker import Capture

WIDTH, HEADS, LENGTH, VOCABULARY = 64, 2, 32, 100


class Block(nn.Module):
    """A transformer's block; its last operator is an addition, of which autograd keeps nothing."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.drop = nn.Dropout(0.1)

    def attend(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        x = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(x.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x):
        x = x + self.drop(self.attend(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """Three blocks, and one that is called twice in a row."""

    def __init__(self, checkpointed):
        super().__init__()
        self.checkpointed = checkpointed
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.shared = Block()
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in [*self.blocks, self.shared, self.shared]:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


class Residual(nn.Module):
    """Convolutions with batch norm, operators in place, and one activation module shared by all blocks."""

    def __init__(self, inside, outside, activation):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(outside)
        self.act = activation
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x):
        y = self.act(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        return self.act(y)


class Convolutional(nn.Module):
    def __init__(self, checkpointed):
        super().__init__()
        self.checkpointed = checkpointed
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        activation = nn.ReLU(inplace=True)
        self.blocks = nn.ModuleList(Residual(i, o, activation) for i, o in ((16, 16), (16, 32), (32, 32)))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x.mean((2, 3)))


def _transformer(batch, checkpointed):
    tokens = torch.zeros(batch, LENGTH, dtype=torch.long)
    return Capture(Transformer(checkpointed), tokens, targets=(tokens,),
                   loss=lambda out, target: functional.cross_entropy(out.flatten(0, 1), target.flatten()))


def transformer(batch=8):
    return _transformer(batch, False)


def transformer_checkpointed(batch=8):
    return _transformer(batch, True)


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


def smoothed(batch=8):
    """Cross entropy with label smoothing on a copy of half-precision scores in FP32."""
    tokens = torch.zeros(batch, LENGTH, dtype=torch.long)
    return Capture(Scores(), tokens, targets=(tokens.clone(),), loss=lambda out, target: functional.cross_entropy(
        out.float().flatten(0, 1), target.flatten(), label_smoothing=0.1))


def convolutional(batch=8):
    return Convolutional(False), torch.empty(batch, 3, 16, 16)


def convolutional_checkpointed(batch=8):
    return Convolutional(True), torch.empty(batch, 3, 16, 16)
