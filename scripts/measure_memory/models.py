"""The measured models, small definitions of known ones. Each function is also a capture function of Stoker.

A module and example inputs come back; the output is a scalar, which is the loss, or (N, classes), whose loss is
cross-entropy with integer targets. `stoker capture scripts/measure_memory/models.py:resnet50` captures what was measured.
"""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

CLASSES = 1000
SIDE = 224  # the images'
VOCABULARY = 50257  # GPT-2's


def _pictures(batch):
    return torch.empty(batch, 3, SIDE, SIDE)


# -- residual networks (He et al. 2015, as torchvision builds them) ----------------------------------------------------


class Residual(nn.Module):
    """A basic block (expansion 1) or a bottleneck (expansion 4)."""

    def __init__(self, inputs, width, stride, expansion):
        super().__init__()
        outputs = width * expansion
        if expansion == 1:
            shapes = [(inputs, width, 3, stride), (width, width, 3, 1)]
        else:
            shapes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        layers = []
        for i, (a, b, kernel, step) in enumerate(shapes):
            layers += [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(b)]
            if i + 1 < len(shapes):
                layers.append(nn.ReLU(inplace=True))
        self.body = nn.Sequential(*layers)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.body(x)
        return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def _resnet(depths, expansion):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for i in range(depth):
            layers.append(Residual(inputs, width, 2 if stage and i == 0 else 1, expansion))
            inputs = width * expansion
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def resnet18(batch=32):
    return _resnet((2, 2, 2, 2), 1), _pictures(batch)


def resnet50(batch=32):
    return _resnet((3, 4, 6, 3), 4), _pictures(batch)


# -- transformers --------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    """Attention and a feed-forward part, each behind a layer norm."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, width, depth, heads, patch=16):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (SIDE // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, pictures):
        x = self.patches(pictures).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit_small(batch=32):
    return VisionTransformer(384, 12, 6), _pictures(batch)


class Decoder(nn.Module):
    """GPT-2's shape, with tied embeddings; returns the loss of the next words."""

    def __init__(self, width=768, depth=12, heads=12, positions=1024, checkpointed=False):
        super().__init__()
        self.checkpointed = checkpointed
        self.words, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)  # as GPT-2: with a deviation of 1 the loss is full of denormal numbers
        self.head.weight = self.words.weight

    def forward(self, ids, labels):
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


def _ids(batch, seq_len):
    return torch.zeros(batch, seq_len, dtype=torch.long)


def gpt2(batch=8, seq_len=512):
    return Decoder(), (_ids(batch, seq_len), _ids(batch, seq_len))


def gpt2_checkpointed(batch=8, seq_len=512):
    return Decoder(checkpointed=True), (_ids(batch, seq_len), _ids(batch, seq_len))


# -- others ----------------------------------------------------------------------------------------------------------------


def mlp(batch=1024):
    layers = [nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, CLASSES)]
    return nn.Sequential(*layers), torch.empty(batch, 1024)


class Lstm(nn.Module):
    """Two layers over words, with a head at each position; returns the loss."""

    def __init__(self, words=10_000, width=512):
        super().__init__()
        self.embedding, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.2, batch_first=True)

    def forward(self, ids, labels):
        states, _ = self.lstm(self.embedding(ids))
        return functional.cross_entropy(self.head(states).flatten(0, 1), labels.flatten())


def lstm(batch=64, seq_len=64):
    return Lstm(), (_ids(batch, seq_len), _ids(batch, seq_len))
