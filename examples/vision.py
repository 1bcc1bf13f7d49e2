"""A small CNN of one's own: the least that a capture function needs.

    stoker capture examples/vision.py:small_cnn -o small_cnn.step.gz
    stoker plan small_cnn.step.gz --gpu v100-16gb --data IMAGES

It returns the module and example inputs. Nothing is trained and no weights are made: only shapes count. The first size of
the example is taken as the batch, and Stoker captures other batches by itself.
"""

import torch
from torch import nn


class SmallCnn(nn.Module):
    def __init__(self, classes: int = 10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.Conv2d(64, 128, 3, padding=1, bias=False), nn.BatchNorm2d(128), nn.ReLU(inplace=True),
            nn.Conv2d(128, 256, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(256), nn.ReLU(inplace=True))
        self.head = nn.Linear(256, classes)

    def forward(self, images):
        return self.head(self.features(images).mean((2, 3)))


def small_cnn():
    # The output is (N, classes), so the loss is cross-entropy with a target of integers unless a third value says otherwise.
    return SmallCnn(), torch.empty(32, 3, 224, 224)
