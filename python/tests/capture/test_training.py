"""What a capture says of the loop around the step: optimizer groups, what is not updated, clipping, averaging, scaling."""

import pytest
import torch
from torch import nn

import stoker
from steps import capture, check
from stoker import Capture
from stoker.errors import CaptureError


def linear(optimizer=None, module=None, **said):
    module = module or nn.Linear(4, 4)
    return Capture(module, torch.empty(4, 4), nn.MSELoss(), optimizer=optimizer and optimizer(module), **said)


def test_groups_carry_what_decides_bytes_and_kernels(on_cuda):
    def adam(model):
        return torch.optim.Adam([{"params": [model.bias], "weight_decay": 0.0, "fused": True},
                                 {"params": [model.weight], "amsgrad": True}], lr=1e-3, betas=(0.8, 0.99),
                                weight_decay=0.1)

    doc = capture(linear(adam))
    first, second = doc["optimizer"]["groups"]
    assert doc["optimizer"]["name"] == "adam" and "class" not in doc["optimizer"]
    assert (first["weight_decay"], first["fused"], first["amsgrad"]) == (0.0, True, False)
    assert (second["weight_decay"], second.get("fused"), second["amsgrad"]) == (0.1, None, True)
    assert first["betas"] == [0.8, 0.99] and first["capturable"] is False and "params" not in first
    assert {p["name"]: p["group"] for p in doc["parameters"]} == {"weight": 1, "bias": 0}


@pytest.mark.parametrize("made, expected", [
    (lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, nesterov=True), {"momentum": 0.9, "nesterov": True}),
    (lambda p: torch.optim.RMSprop(p, momentum=0.5, centered=True), {"momentum": 0.5, "centered": True}),
    (lambda p: torch.optim.Adagrad(p, lr_decay=0.1, foreach=False), {"lr_decay": 0.1, "foreach": False}),
])
def test_settings_of_other_optimizers(on_cuda, made, expected):
    group, = capture(linear(lambda m: made(m.parameters())))["optimizer"]["groups"]
    assert {k: group[k] for k in expected} == expected


@pytest.mark.skipif(not hasattr(torch.optim, "Adafactor"), reason="torch.optim.Adafactor is newer than this PyTorch")
def test_adafactor_keeps_its_own_numbers(on_cuda):
    group, = capture(linear(lambda m: torch.optim.Adafactor(m.parameters())))["optimizer"]["groups"]
    assert group["beta2_decay"] == -0.8 and group["eps"] == [None, 0.001] and group["d"] == 1.0


def test_what_the_optimizer_was_not_given_is_not_updated(on_cuda):
    """It gets a gradient all the same, since it requires one."""
    doc = check(capture(linear(lambda m: torch.optim.SGD([m.weight], lr=1))))
    weight, bias = doc["parameters"]
    assert "updated" not in weight and bias["updated"] is False and bias["group"] == 0
    assert "gradient" in bias


def test_a_class_is_named_for_what_its_step_is(on_cuda):
    class Named(torch.optim.AdamW):
        """Adds nothing to the step."""

    class Sophia(torch.optim.AdamW):
        def step(self, closure=None):
            return super().step(closure)

    named = capture(linear(lambda m: Named(m.parameters())))
    assert named["optimizer"]["name"] == "adamw" and named["optimizer"]["class"].endswith(".Named")
    own = capture(linear(lambda m: Sophia(m.parameters())))
    assert own["optimizer"]["name"] == "sophia" and "unfaithful" not in own["diagnostics"]


def test_a_name_alone_is_not_enough(on_cuda):
    class AdamW(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 1e-3})

        def step(self, closure=None):
            pass

    doc = capture(linear(lambda m: AdamW(m.parameters())))
    sentence, = doc["diagnostics"]["unfaithful"]
    assert doc["optimizer"]["name"] == "adamw" and "taken for PyTorch's adamw" in sentence

    class Args:
        optim_bits = 8

    def eight_bits(model):  # as bitsandbytes marks it
        made = AdamW(model.parameters())
        made.args = Args()
        return made

    assert capture(linear(eight_bits))["optimizer"]["name"] == "adamw8bit"


def test_optimizers_of_other_things_are_refused(on_cuda):
    with pytest.raises(CaptureError, match="none of the model's parameters"):
        capture(linear(lambda m: torch.optim.SGD(nn.Linear(4, 4).parameters(), lr=1)))
    with pytest.raises(CaptureError, match="is a list, which has no param_groups"):
        capture(linear(lambda m: [torch.optim.SGD(m.parameters(), lr=1)]))


def test_an_object_can_be_captured_again(on_cuda):
    made = linear(lambda m: torch.optim.SGD([m.weight], lr=1))
    first, second = capture(made), capture(made)
    assert first["parameters"] == second["parameters"] and second["parameters"][1]["updated"] is False


def test_training_says_what_was_said_and_no_more(on_cuda):
    assert "training" not in capture(linear())
    doc = capture(linear(clip=True, ema=False))
    assert doc["training"] == {"clip": True, "ema": False} and doc["schema_version"] == [1, 4]


def test_a_scaler_object_counts_as_on_the_users_machine(on_cuda):
    def function(batch=4, enabled=True):
        return linear(grad_scaler=torch.amp.GradScaler("cuda", enabled=enabled))

    assert capture(function)["training"] == {"grad_scaler": True}
    assert capture(function, options={"enabled": False})["training"] == {"grad_scaler": False}
    with pytest.raises(CaptureError, match="clip=1.0 is not possible: give True, False, or"):
        capture(linear(clip=1.0))
    with pytest.raises(CaptureError, match="or a torch.amp.GradScaler"):
        capture(stoker.Capture(nn.Linear(4, 4), torch.empty(4, 4), grad_scaler="yes"))
