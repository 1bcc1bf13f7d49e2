"""Facts of training that no forecast may pass over: optimizers in hooks, gradients that never come, parameters that are replaced."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import steps
from stoker.errors import InternalError, UserCodeError
from stoker.user_code import user_code


def hooked(optimizer=torch.optim.AdamW):
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))
    optimizers = {p: optimizer([p]) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    return model


def test_an_optimizer_in_a_hook_is_captured_within_the_backward():
    model = hooked()
    before = list(model.parameters())
    doc = steps.check(steps.capture((model, torch.empty(4, 16), lambda out: out.sum())))
    assert doc["optimizer"] == {"name": "none", "in_backward": "adamw", "groups": []}
    assert not any("gradient" in p for p in doc["parameters"]), "each gradient dies as soon as its optimizer has stepped"
    weights = sum(p.numel() for p in before) * 4
    states = [s for s in doc["storages"] if s[1] == "persistent"]
    assert sum(size for size, _ in states if isinstance(size, int)) >= 2 * weights
    assert "warnings" not in doc["diagnostics"], "gradients came, though none is left"
    assert all(a is b and type(a) is nn.Parameter for a, b in zip(before, model.parameters())), "the model is as it was"


def test_hooks_that_step_nothing_change_no_optimizer():
    model = nn.Linear(4, 4)
    seen = []
    model.weight.register_hook(lambda gradient: seen.append(1) or gradient * 2)
    doc = steps.capture((model, torch.empty(2, 4)))
    assert "optimizer" not in doc and len(seen) == 3 and all("gradient" in p for p in doc["parameters"])


class Blocks(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3))
        self.head, self.reentrant = nn.Linear(8, 2), reentrant

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_parameters_without_a_gradient_are_named_by_module():
    (said,) = steps.capture((Blocks(True), torch.empty(4, 8)))["diagnostics"]["warnings"]
    assert "6 of 8 parameters" in said and "(92 % of the weights): blocks;" in said and "use_reentrant=False" in said
    assert "warnings" not in steps.capture((Blocks(False), torch.empty(4, 8)))["diagnostics"]


def test_a_branch_that_is_never_used_is_named():
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.used(x)

    (said,) = steps.capture((Unused(), torch.empty(4, 8)))["diagnostics"]["warnings"]
    assert "2 of 4 parameters" in said and ": idle;" in said and "checkpoint" not in said


class Replaced(nn.LSTM):
    """Its recurrent weight is made of another parameter in each forward."""

    def __init__(self):
        super().__init__(8, 16, batch_first=True)
        weight = self.weight_hh_l0
        del self._parameters["weight_hh_l0"]
        self.raw = nn.Parameter(weight.data)

    def flatten_parameters(self):
        pass

    def forward(self, x):
        self.weight_hh_l0 = functional.dropout(self.raw, 0.5)
        return super().forward(x)[0][:, -1]


def test_a_parameter_that_the_forward_replaces_is_captured_with_its_copy(on_cuda):
    doc = steps.check(steps.capture((Replaced(), torch.empty(4, 5, 8))))
    names = [p["name"] for p in doc["parameters"]]
    assert "raw" in names and "weight_hh_l0" not in names and all("gradient" in p for p in doc["parameters"])
    (run,) = steps.operators(doc, "aten::_cudnn_rnn")
    whole = 4 * (64 * 8 + 64 * 16 + 64 + 64)
    assert doc["storages"][run["inputs"][1]["storage"]][0] == whole, "cuDNN copies weights that lie apart"
    assert not [s for s in doc["storages"] if s[1] == "persistent"], "the next forward lets the old weight go"


def test_a_fault_of_ours_is_never_called_the_users(monkeypatch):
    from stoker.tracing import rnn

    def fails(*arguments):
        raise KeyError(140500234856448)

    monkeypatch.setattr(rnn, "flatten_weights", fails)
    monkeypatch.setattr(rnn.flatten_weights, "__code__", compile(
        "def fails(*a):\n    raise KeyError(1)\n", rnn.__file__, "exec").co_consts[0])
    with pytest.raises(InternalError, match="a fault of stoker's and not of your code") as raised:
        steps.capture((nn.LSTM(4, 4), torch.empty(3, 2, 4)))
    assert "rnn.py" in raised.value.traceback_text


def test_a_fault_of_the_users_stays_the_users():
    with pytest.raises(UserCodeError, match="correct the code"), user_code("it raised in its step"):
        [][1]

    class Wrong(nn.Linear):
        def forward(self, x):
            return super().forward(x[:, :3])

    with pytest.raises(UserCodeError, match="correct the code") as raised:
        steps.capture((Wrong(4, 4), torch.empty(2, 4)))
    assert "test_training_facts.py" in raised.value.traceback_text


def test_a_forward_with_its_graph_holds_what_a_backward_would_need():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    graph = steps.check(steps.capture((model, torch.empty(32, 64)), mode="forward"))
    plain = steps.check(steps.capture((model, torch.empty(32, 64)), mode="inference"))
    assert graph["mode"] == "forward" and not any("gradient" in p for p in graph["parameters"])
    assert steps.peak_bytes(graph, batch=32) > steps.peak_bytes(plain, batch=32)


class Keeps(nn.Module):
    """Holds `kept` from step to step."""

    def __init__(self, kept):
        super().__init__()
        self.linear, self.kept = nn.Linear(8, 8), kept

    def forward(self, x):
        out = self.linear(x)
        if isinstance(self.kept, list):
            self.kept.append(out.detach())
        elif isinstance(self.kept, dict):
            self.kept["last"] = out.detach()
        else:
            self.kept = torch.cat([self.kept.to(out.device), out.detach()])
        return out


@pytest.mark.parametrize(("kept", "grows"), [([], True), (torch.empty(0, 8), True), ({}, False)])
def test_what_holds_more_after_each_step_is_named(kept, grows):
    notes = " ".join(steps.capture((Keeps(kept), torch.empty(4, 8)))["diagnostics"].get("unfaithful", []))
    assert ("'kept' of the model holds more after each step" in notes) == grows
