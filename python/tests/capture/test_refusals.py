"""Refusals name the file, the line and the module of the user's code, and a cure."""

import pytest
import torch

from steps import capture
from stoker.errors import CaptureError, NotAffineError


class After(torch.nn.Module):
    def __init__(self, after):
        super().__init__()
        self.linear, self.after = torch.nn.Linear(8, 8), after

    def forward(self, x):
        return self.after(self.linear(x))


@pytest.mark.parametrize("after, words", [
    (lambda x: x.argmax(1).tolist()[0] * x, r"at .*test_refusals.py:\d+ in the model"),
    (lambda x: torch.linalg.svd(x @ x.t())[1], r"storage of .* at .*test_refusals.py:\d+ in the model"),
])
def test_what_differs_between_sizes_is_named_with_its_line(after, words):
    with pytest.raises(NotAffineError, match=words):
        capture((After(after), torch.empty(4, 8)))


@pytest.mark.parametrize("after, words", [
    (lambda x: x + float(x.detach().cpu().numpy().sum()), r"values of a tensor at .*test_refusals.py:\d+"),
    (lambda x: torch.sparse.mm(x.to_sparse(), x.t()), r"at .*test_refusals.py:\d+ .*use dense tensors"),
    (lambda x: torch.nested.nested_tensor([x[0, :3], x[1, :2]], layout=torch.jagged),
     r"at .*test_refusals.py:\d+.*use a mask in place of nested"),
    (lambda x: torch.nested.as_nested_tensor([x[0, :3], x[1, :2]]), r"at .*test_refusals.py:\d+ .*use a mask in place of nested"),
])
def test_refusals_name_the_line_and_a_cure(after, words):
    with pytest.raises(CaptureError, match=words):
        capture((After(after), torch.empty(4, 8)))
