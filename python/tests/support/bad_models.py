"""Capture functions that cannot be captured, each for one reason."""

import torch
from torch import nn

import stoker

EXAMPLE = torch.empty(8, 4)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.after(self.linear(x))


def _model(after):
    made = type("Model", (Linear,), {"after": staticmethod(after)})
    return lambda: (made(), EXAMPLE)


def _raise(x):
    raise ValueError("my own mistake")


picks_rows = _model(lambda x: x[x.sum(1) > 0])
integer_item = _model(lambda x: x[:, :x.long()[0, 0].item()])
to_numpy = _model(lambda x: x * x.detach().cpu().numpy().max())
raises = _model(_raise)
out_of_range = _model(lambda x: x[:, 9])
no_such_key = _model(lambda x: {"logits": x}["logit"])
grows = _model(lambda x: x + x.new_zeros(2 ** x.shape[0]).sum())

if not hasattr(torch.ops.stoker_tests, "real_only"):  # this file is imported once for each test
    library = torch.library.Library("stoker_tests", "DEF")
    library.define("real_only(Tensor x) -> Tensor")
    library.impl("real_only", lambda x: 2 * x, "CPU")
    library.impl("real_only", lambda x: 2 * x, "CUDA")
no_fake = _model(lambda x: torch.ops.stoker_tests.real_only(x))


def frozen():
    return nn.Linear(4, 4).requires_grad_(False), EXAMPLE


def lazy():
    return nn.LazyLinear(4), EXAMPLE


def sparse():
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Flatten(), nn.Linear(12, 2))
    return model, torch.zeros(8, 3, dtype=torch.long)


def ends_the_program():
    raise SystemExit("no licence")


def fails_to_build():
    raise KeyError("nothing here")


def returns_a_number():
    return 5


def undeclared():
    return stoker.Capture(nn.Linear(4, 4), EXAMPLE, dimensions={"width": 4})


def vector_loss():
    return nn.Linear(4, 4), EXAMPLE, lambda out: out.sum(1)


def optimizer_third():
    model = nn.Linear(4, 4)
    return model, EXAMPLE, torch.optim.Adam(model.parameters())


class WritesWhatIsSaved(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = torch.sigmoid(self.layer(x))
        y.mul_(2)  # the backward of sigmoid needs its result
        return y


def overwrites():
    return WritesWhatIsSaved(), torch.zeros(4, 8)
