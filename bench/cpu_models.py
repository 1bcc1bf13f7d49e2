"""Six small models whose training steps take 0.1 to 2 seconds on two cores of a CPU: what forecasts for CPUs are proved on.

Each function is a capture function of Stoker and needs PyTorch alone. `BATCHES` has three batch sizes of each:

    python -m stoker training-runs bench/cpu_models.py:resnet18 --device cpu --batches 4,8,16 --out rows.json
"""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from measure_memory import models as known  # noqa: E402

BATCHES = {"resnet18": (4, 8, 16), "mobilenet_v3": (8, 16, 32), "vgg11": (4, 8, 16), "gru_translator": (16, 32, 64),
           "vit_small_cpu": (4, 8, 16), "gpt_small_cpu": (2, 4, 8)}
CLASSES = 1000


def _pictures(batch, side):
    return torch.empty(batch, 3, side, side)


# -- convolutional networks --------------------------------------------------------------------------------------------


def resnet18(batch=8):
    """ResNet-18 (He et al. 2015) on pictures of 128 pixels."""
    model, _ = known.resnet18(1)
    return model, _pictures(batch, 128)


class SqueezeExcite(nn.Module):
    """Each channel times a gate made of all channels' means (Hu et al. 2018), with MobileNetV3's hard sigmoid."""

    def __init__(self, width):
        super().__init__()
        narrow = max(8, (width // 4 + 4) // 8 * 8)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, narrow, 1), nn.ReLU(inplace=True),
                                  nn.Conv2d(narrow, width, 1), nn.Hardsigmoid(inplace=True))

    def forward(self, x):
        return x * self.gate(x)


def _normed(inputs, outputs, kernel, stride, groups, activation):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return layers + ([activation(inplace=True)] if activation else [])


class Inverted(nn.Module):
    """Widen, depthwise, squeeze-excite, narrow; with a shortcut where the shapes agree."""

    def __init__(self, kernel, inputs, width, outputs, excite, activation, stride):
        super().__init__()
        body = _normed(inputs, width, 1, 1, 1, activation) if width != inputs else []
        body += _normed(width, width, kernel, stride, width, activation)
        body += [SqueezeExcite(width)] if excite else []
        self.body = nn.Sequential(*body, *_normed(width, outputs, 1, 1, 1, None))
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.shortcut else self.body(x)


# Table 2 of Howard et al., "Searching for MobileNetV3" (2019): kernel, width, outputs, squeeze-excite, activation, stride.
_RE, _HS = nn.ReLU, nn.Hardswish
MOBILENET_V3_SMALL = (
    (3, 16, 16, True, _RE, 2), (3, 72, 24, False, _RE, 2), (3, 88, 24, False, _RE, 1), (5, 96, 40, True, _HS, 2),
    (5, 240, 40, True, _HS, 1), (5, 240, 40, True, _HS, 1), (5, 120, 48, True, _HS, 1), (5, 144, 48, True, _HS, 1),
    (5, 288, 96, True, _HS, 2), (5, 576, 96, True, _HS, 1), (5, 576, 96, True, _HS, 1))


def mobilenet_v3(batch=16):
    """MobileNetV3-Small on pictures of 224 pixels."""
    layers, inputs = _normed(3, 16, 3, 2, 1, _HS), 16
    for kernel, width, outputs, excite, activation, stride in MOBILENET_V3_SMALL:
        layers.append(Inverted(kernel, inputs, width, outputs, excite, activation, stride))
        inputs = outputs
    layers += _normed(inputs, 576, 1, 1, 1, _HS)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(inplace=True), nn.Dropout(0.2),
            nn.Linear(1024, CLASSES)]
    return nn.Sequential(*layers, *head), _pictures(batch, 224)


def vgg11(batch=8):
    """VGG-11 (Simonyan and Zisserman 2014) on pictures of 64 pixels, whose last maps have 2 x 2 values."""
    layers, inputs = [], 3
    for width, repeats in ((64, 1), (128, 1), (256, 2), (512, 2), (512, 2)):
        for _ in range(repeats):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Flatten(), nn.Linear(512 * 4, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096),
            nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, CLASSES)]
    return nn.Sequential(*layers, *head), _pictures(batch, 64)


# -- words -------------------------------------------------------------------------------------------------------------


class Translator(nn.Module):
    """A GRU reads the source, another is fed the true previous words and attends to the first one's states by dot products
    (Luong et al. 2015); a head over the vocabulary at each position."""

    def __init__(self, words=8000, units=256):
        super().__init__()
        self.source, self.target = nn.Embedding(words, units), nn.Embedding(words, units)
        self.encoder, self.decoder = nn.GRU(units, units, batch_first=True), nn.GRU(units, units, batch_first=True)
        self.join, self.head = nn.Linear(2 * units, units), nn.Linear(units, words)

    def forward(self, source, previous):
        memory, state = self.encoder(self.source(source))
        states, _ = self.decoder(self.target(previous), state)
        weights = torch.softmax(torch.bmm(states, memory.transpose(1, 2)), -1)
        context = torch.bmm(weights, memory)
        return self.head(torch.tanh(self.join(torch.cat([states, context], -1))))


def _next_words(logits, following):
    return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def gru_translator(batch=32):
    """24 words a sentence. The length is no dimension: without cuDNN a recurrent layer is as many operators as it has words."""
    from stoker import Capture

    def words():
        return torch.zeros(batch, 24, dtype=torch.long)

    return Capture(Translator(), (words(), words()), loss=_next_words, targets=(words(),),
                   sample={"what": "sentence pair"})


def vit_small_cpu(batch=8):
    """A vision transformer of half the depth of ViT-Tiny (Touvron et al. 2021) on pictures of 224 pixels."""
    return known.VisionTransformer(192, 6, 3), _pictures(batch, known.SIDE)


def gpt_small_cpu(batch=4, seq_len=64):
    """GPT-2's vocabulary and shape, 4 layers of width 256; it returns its own loss."""
    ids = torch.zeros(batch, seq_len, dtype=torch.long)
    return known.Decoder(256, 4, 4, positions=256), (ids, ids.clone())
