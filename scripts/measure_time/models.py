"""Models whose whole steps are timed, beside those of measure_memory/models.py. Each function is also a capture function of Stoker.

A module and example inputs come back; the output is (N, classes), whose loss is cross-entropy with integer targets, or the loss.
"""

import torch
from torch import nn
from torch.nn import functional

CLASSES = 1000
WORDS = 30522  # BERT's


def _pictures(batch, side=224):
    return torch.empty(batch, 3, side, side)


def _conv(inputs, outputs, kernel=3, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return layers + ([act(inplace=True)] if act else [])


class Shortcut(nn.Module):
    """x + body(x)."""

    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x + self.body(x)


def mobilenet(batch=64):
    """Inverted bottlenecks of depthwise convolutions, widths as MobileNetV2 (Sandler et al. 2018)."""
    layers, inputs = _conv(3, 32, 3, 2, act=nn.ReLU6), 32
    for expansion, outputs, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                                (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeats):
            width, step = inputs * expansion, stride if i == 0 else 1
            block = _conv(inputs, width, 1, act=nn.ReLU6) if expansion > 1 else []
            block += _conv(width, width, 3, step, width, act=nn.ReLU6) + _conv(width, outputs, 1, act=None)
            layers.append(Shortcut(*block) if step == 1 and inputs == outputs else nn.Sequential(*block))
            inputs = outputs
    layers += _conv(inputs, 1280, 1, act=nn.ReLU6)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, CLASSES)), _pictures(batch)


def grouped_net(batch=64):
    """Bottlenecks of grouped 3x3 convolutions at one width a stage, as ResNeXt 32x4d has them (Xie et al. 2017)."""
    layers, inputs = _conv(3, 64, 7, 2) + [nn.MaxPool2d(3, 2, 1)], 64
    for stage, repeats in enumerate((2, 3, 5, 2)):
        width, outputs = 128 << stage, 256 << stage
        layers += _conv(inputs, outputs, 1, 2 if stage else 1)
        for _ in range(repeats):
            layers += [Shortcut(*_conv(outputs, width, 1), *_conv(width, width, 3, 1, 32), *_conv(width, outputs, 1, act=None)),
                       nn.ReLU(inplace=True)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES)), _pictures(batch)


def vgg16(batch=32):
    layers, inputs = [], 3
    for width, repeats in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(repeats):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096),
            nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, CLASSES)]
    return nn.Sequential(*layers, *head), _pictures(batch)


class ChannelsNorm(nn.Module):
    """Layer norm over the channels of pictures."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class WideBlock(nn.Module):
    """7x7 depthwise, layer norm, two products: ConvNeXt's block (Liu et al. 2022)."""

    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.depthwise(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext(batch=64):
    layers, inputs = [nn.Conv2d(3, 96, 4, 4), ChannelsNorm(96)], 96
    for width, repeats in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width != inputs:
            layers += [ChannelsNorm(inputs), nn.Conv2d(inputs, width, 2, 2)]
        layers += [WideBlock(width) for _ in range(repeats)]
        inputs = width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(768), nn.Linear(768, CLASSES)]
    return nn.Sequential(*layers, *head), _pictures(batch)


class Encoder(nn.Module):
    """BERT's shape (Devlin et al. 2019): words, post-norm layers of PyTorch's own, a head of two classes."""

    def __init__(self, width=768, depth=12, heads=12, positions=512):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, width), nn.Embedding(positions, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.layers(x)[:, 0])


def bert(batch=16, seq_len=128):
    return Encoder(), torch.zeros(batch, seq_len, dtype=torch.long)


class Unet(nn.Module):
    """Two convolutions a level, transposed convolutions on the way up (Ronneberger et al. 2015); the loss of its picture."""

    def __init__(self, width=32, depth=4):
        super().__init__()
        self.down, self.up, self.join = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        inputs = 3
        for i in range(depth):
            self.down.append(nn.Sequential(*_conv(inputs, width << i), *_conv(width << i, width << i)))
            inputs = width << i
        for i in reversed(range(depth - 1)):
            self.up.append(nn.ConvTranspose2d(width << (i + 1), width << i, 2, 2))
            self.join.append(nn.Sequential(*_conv(width << (i + 1), width << i), *_conv(width << i, width << i)))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, level in enumerate(self.down):
            x = level(functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x).mean((2, 3))


def unet(batch=16):
    return Unet(), _pictures(batch, 256)


def small_cnn(batch=128):
    """Pictures of 32 pixels, three convolutions: the host is what it waits for."""
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
              nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128 * 64, 256), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(256, 10)), _pictures(batch, 32)


def deep_narrow(batch=64):
    """A hundred layers of almost no arithmetic: nothing but launches."""
    layers = [layer for _ in range(100) for layer in (nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(64, 10)), torch.empty(batch, 64)
