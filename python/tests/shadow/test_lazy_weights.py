"""Weights that get their shape in the first forward."""

import pytest
from test_scripts import captured, comparable

LAZY = """
import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self, device=None):
        super().__init__()
        self.conv = nn.LazyConv2d(8, 3, device=device)
        self.norm = nn.LazyBatchNorm2d(device=device)
        self.head = nn.LazyLinear(10, device=device)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.conv(x))).flatten(1))

batch_size = 16
model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(5):
    x = torch.randn(batch_size, 3, 16, 16, device=next(model.parameters()).device, dtype=next(model.parameters()).dtype)
    y = torch.randint(0, 10, (batch_size,), device='cuda')
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
SHAPED = LAZY.replace("nn.LazyConv2d(8", "nn.Conv2d(3, 8").replace("nn.LazyBatchNorm2d(", "nn.BatchNorm2d(8, ") \
    .replace("nn.LazyLinear(10", "nn.Linear(8 * 14 * 14, 10")


@pytest.mark.parametrize("made", ["Net('cuda')", "Net().cuda().half()"])
def test_a_model_without_shapes_is_the_one_with_them(tmp_path, on_cuda, made):
    lazy = captured(tmp_path, LAZY.replace("Net().cuda()", made))
    shaped = captured(tmp_path, SHAPED.replace("Net().cuda()", made))
    assert [lazy["types"][p["type"]][1] for p in lazy["parameters"]][0] == [8, 3, 3, 3]
    assert comparable(lazy) == comparable(shaped)
