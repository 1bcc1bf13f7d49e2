"""What models ask of PyTorch around their operators: streams, the GPU, distributions that check themselves, scripted parts."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import steps
from stoker.errors import CaptureError, UserCodeError


class Model(nn.Module):
    def __init__(self, after):
        super().__init__()
        self.linear, self.after = nn.Linear(8, 8), after

    def forward(self, x):
        return self.after(self.linear(x))


def capture(after, **settings):
    return steps.check(steps.capture(lambda: (Model(after), torch.empty(4, 8)), **settings))


def asks_for_the_gpu(x):
    stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        x = x * 2
    event.record()
    torch.cuda.synchronize()
    x.record_stream(stream)
    assert x.is_cuda and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_properties(0).major == torch.cuda.get_device_capability()[0]
    return x


def test_code_that_asks_for_streams_and_the_gpu_is_answered(on_cuda):
    capture(asks_for_the_gpu)


def test_distributions_that_check_their_arguments_pass():
    def after(x):
        mean, spread = x.chunk(2, 1)
        normal = torch.distributions.Normal(mean, spread.exp())
        beta = torch.distributions.Beta(spread.exp(), mean.exp())
        gamma = torch.distributions.Gamma(spread.exp(), mean.exp())
        return normal.rsample() + beta.rsample() + gamma.rsample() + torch.distributions.kl_divergence(
            normal, torch.distributions.Normal(0.0, 1.0))

    assert all("gradient" in p for p in capture(after)["parameters"])


def test_a_scripted_part_is_the_same_in_each_run():
    part = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))
    doc = steps.check(steps.capture((nn.Sequential(nn.Linear(8, 8), part), torch.empty(4, 8))))
    assert sum(row["name"] == "aten::addmm" for row in steps.operators(doc)) == 2


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 2)
        self.register_buffer("edges", torch.eye(4).to_sparse())

    def forward(self, x):
        return self.linear(torch.sparse.mm(self.edges, x))


def test_a_sparse_buffer_is_named():
    with pytest.raises(CaptureError, match="the buffer 'edges' of module '0' is a sparse tensor.*index_add"):
        steps.capture((nn.Sequential(Sparse()), torch.empty(4, 8)), fixed={"batch": 4})


def test_a_sparse_gradient_is_named_by_the_line_and_module_of_its_forward():
    model = nn.Sequential(nn.Embedding(10, 8, sparse=True), nn.Linear(8, 2))
    with pytest.raises(CaptureError, match=r"sparse tensor .*in module '0'.*sparse=False"):
        steps.capture((model, torch.zeros(4, dtype=torch.long)))


def test_what_is_said_of_a_line_holds_in_its_backward():
    def after(x):
        out = torch.zeros_like(x)
        mask = x > 0
        out[mask] = x[mask]
        return out

    with pytest.raises(CaptureError) as refusal:
        capture(after)
    place = str(refusal.value).partition("--assume ")[2].partition("=")[0]
    assert list(capture(after, assume=[f"{place}=all"])["diagnostics"]["reads"].values()) == ["all rows"]


def test_operators_of_the_compiler_are_refused_with_what_stands_for_them():
    attention = pytest.importorskip("torch.nn.attention.flex_attention").flex_attention

    def after(x):
        heads = x.view(1, 1, *x.shape)
        return attention(heads, heads, heads)[0, 0]

    with pytest.raises(UserCodeError, match=r"calls flex_attention at .*test_surroundings.py:\d+.*scaled_dot_product_attention"):
        capture(after)

    def cured(x):
        heads = x.view(1, 1, *x.shape)
        return functional.scaled_dot_product_attention(heads, heads, heads)[0, 0]

    steps.capture((Model(cured), torch.empty(4, 8)))
