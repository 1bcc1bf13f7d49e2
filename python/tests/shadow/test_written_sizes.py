"""Batches that a script names nowhere: the first size of the tensors that it makes up."""

import ast

import pytest
from test_scripts import captured, comparable, found

from stoker.shadow.settings import batches

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""
LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
WRITTEN = HEAD + """
model = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 10)).cuda()
x = torch.randn(48, 20, device='cuda')
y = torch.randint(0, 10, size=(48,), device='cuda').view(48)
""" + LOOP
NAMED = WRITTEN.replace("x = torch.randn(48", "batch_size = 48\nx = torch.randn(batch_size").replace("size=(48,)", "size=(batch_size,)") \
    .replace("view(48)", "view(batch_size)")
# A weight of the same first size: with other sizes it would be another model.
WEIGHT = HEAD + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(48, 20))
        self.head = nn.LazyLinear(10)

    def forward(self, x):
        return self.head(x @ self.weight.t())

model = Net().cuda()
x = torch.randn(48, 20, device='cuda')
y = torch.randint(10, (48,), device='cuda')
""" + LOOP


def test_a_batch_that_is_written_out_is_varied_as_a_named_one_is(tmp_path, on_cuda):
    written, named = captured(tmp_path, WRITTEN), captured(tmp_path, NAMED)
    assert written["dimensions"][0]["default"] == 48 and written["dimensions"][0]["captured"] == [3, 5]
    assert comparable(written) == comparable(named)
    assert found(written)["batch"] == 48


def test_a_size_that_the_weights_share_is_no_batch(tmp_path, on_cuda):
    doc = captured(tmp_path, WEIGHT)
    assert [doc["types"][p["type"]][1] for p in doc["parameters"]] == [[48, 20], [10, 48], [10]]
    assert any("other batches than 48 could not be made" in note for note in doc["diagnostics"]["unfaithful"])


@pytest.mark.parametrize("text, other", [
    ("torch.randn(64, 3, device=d)", "torch.randn(8, 3, device=d)"), ("torch.zeros((64, 64))", "torch.zeros((8, 64))"),
    ("torch.randint(64, 90, (64,))", "torch.randint(64, 90, (8,))"), ("torch.randint(64, size=(64, 2))", "torch.randint(64, size=(8, 2))"),
    ("torch.full((64,), 64)", "torch.full((8,), 64)"), ("x.view(64, -1)", "x.view(8, -1)"),
    ("range(0, len(x), 64)", "range(0, len(x), 8)"), ("x[i:i + 64]", "x[i:i + 8]"), ("x[:64, :64]", "x[:8, :64]"),
    ("nn.Linear(64, 64)", "nn.Linear(64, 64)"), ("range(64)", "range(64)"), ("x[64:]", "x[64:]"),
    ("torch.randn(32, 64)", "torch.randn(32, 64)")])
def test_first_sizes_alone_are_replaced(text, other):
    assert ast.unparse(batches._ReplaceSizes(64, 8).visit(ast.parse(text))) == other
