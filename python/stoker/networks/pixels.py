"""Networks whose answer is a picture or boxes: a U-Net that segments, and a detector in the manner of YOLO.

Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", 2015, with batch normalisation; the
detector follows what has been published of the eighth YOLO (small): cross-stage blocks, pyramid pooling, two pyramids, heads
apart for boxes and classes.
"""

from __future__ import annotations

import torch
from torch import nn

from . import parts


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    layers = []
    for size in (inputs, outputs):
        layers += [nn.Conv2d(size, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class SegmentationUNet(nn.Module):
    def __init__(self, classes: int, width: int = 64):
        super().__init__()
        widths = [width * 2**i for i in range(5)]
        self.inc = _twice(3, widths[0])
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), _twice(a, b)) for a, b in zip(widths, widths[1:]))
        pairs = list(zip(widths[1:], widths))[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
        self.join = nn.ModuleList(_twice(a, b) for a, b in pairs)
        self.outc = nn.Conv2d(widths[0], classes, 1)

    def forward(self, images, masks):
        kept = [self.inc(images)]
        for block in self.down:
            kept.append(block(kept[-1]))
        x = kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        scores = self.outc(x)
        return parts.Output(loss=nn.functional.cross_entropy(scores, masks), logits=scores)


class _Conv(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn, self.act = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.03), nn.SiLU(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class _Bottleneck(nn.Module):
    def __init__(self, width: int, adds: bool):
        super().__init__()
        self.cv1, self.cv2, self.adds = _Conv(width, width, 3), _Conv(width, width, 3), adds

    def forward(self, x):
        out = self.cv2(self.cv1(x))
        return x + out if self.adds else out


class _CrossStage(nn.Module):
    """Half of the channels go through bottlenecks; all that came on the way is joined."""

    def __init__(self, inputs: int, outputs: int, count: int, adds: bool):
        super().__init__()
        half = outputs // 2
        self.cv1, self.cv2 = _Conv(inputs, outputs), _Conv((2 + count) * half, outputs)
        self.m = nn.ModuleList(_Bottleneck(half, adds) for _ in range(count))

    def forward(self, x):
        found = list(self.cv1(x).chunk(2, 1))
        for block in self.m:
            found.append(block(found[-1]))
        return self.cv2(torch.cat(found, 1))


class _PyramidPooling(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.cv1, self.cv2 = _Conv(width, width // 2), _Conv(2 * width, width)
        self.m = nn.MaxPool2d(5, stride=1, padding=2)

    def forward(self, x):
        found = [self.cv1(x)]
        for _ in range(3):
            found.append(self.m(found[-1]))
        return self.cv2(torch.cat(found, 1))


class Detector(nn.Module):
    """Scores of 80 classes and boxes as distributions over 16 bins at three scales.

    The loss takes every place for one that holds an object, which is the most that it can cost; which places do depends
    on the data.
    """

    BINS = 16

    def __init__(self, classes: int = 80, widths=(32, 64, 128, 256, 512), counts=(1, 2, 2, 1)):
        super().__init__()
        self.stem = _Conv(3, widths[0], 3, 2)
        self.stages = nn.ModuleList(nn.Sequential(_Conv(a, b, 3, 2), _CrossStage(b, b, n, True))
                                    for a, b, n in zip(widths, widths[1:], counts))
        self.pooling = _PyramidPooling(widths[4])
        p3, p4, p5 = widths[2:]
        self.up4, self.up3 = _CrossStage(p5 + p4, p4, 1, False), _CrossStage(p4 + p3, p3, 1, False)
        self.to4, self.to5 = _Conv(p3, p3, 3, 2), _Conv(p4, p4, 3, 2)
        self.down4, self.down5 = _CrossStage(p3 + p4, p4, 1, False), _CrossStage(p4 + p5, p5, 1, False)
        box, score = max(16, p3 // 4, 4 * self.BINS), max(p3, min(classes, 100))
        self.boxes = nn.ModuleList(nn.Sequential(_Conv(w, box, 3), _Conv(box, box, 3), nn.Conv2d(box, 4 * self.BINS, 1))
                                   for w in (p3, p4, p5))
        self.scores = nn.ModuleList(nn.Sequential(_Conv(w, score, 3), _Conv(score, score, 3), nn.Conv2d(score, classes, 1))
                                    for w in (p3, p4, p5))

    def _pyramid(self, images):
        x = self.stem(images)
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        third, fourth, fifth = levels[1], levels[2], self.pooling(levels[3])
        fourth = self.up4(torch.cat([nn.functional.interpolate(fifth, scale_factor=2.0), fourth], 1))
        third = self.up3(torch.cat([nn.functional.interpolate(fourth, scale_factor=2.0), third], 1))
        fourth = self.down4(torch.cat([self.to4(third), fourth], 1))
        return third, fourth, self.down5(torch.cat([self.to5(fourth), fifth], 1))

    def forward(self, images, classes, bins):
        levels = self._pyramid(images)
        scores = torch.cat([head(x).flatten(2) for head, x in zip(self.scores, levels)], 2).transpose(1, 2).contiguous()
        boxes = torch.cat([head(x).flatten(2) for head, x in zip(self.boxes, levels)], 2).transpose(1, 2).contiguous()
        loss = nn.functional.binary_cross_entropy_with_logits(scores, classes, reduction="none").sum()
        found = boxes.view(-1, self.BINS)
        return parts.Output(loss=loss + nn.functional.cross_entropy(found, bins.view(-1)), logits=scores)
