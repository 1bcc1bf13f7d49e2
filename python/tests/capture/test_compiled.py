"""Steps under torch.compile: what is kept for the backward, graphs that break, sizes, and refusals."""

import pytest
import torch
from torch import nn

from steps import capture, check, operators, value
from stoker import Capture
from stoker.tracing import compiled


class Block(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def net(batch=8):
    return nn.Sequential(Block(), Block(), nn.Linear(16, 4)), torch.empty(batch, 16)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        return torch.relu(self.head(torch.tanh(self.lstm(torch.sin(x))[0][:, -1])))


def graphs(doc) -> set:
    return {row["attributes"]["c"] for row in operators(doc) if "c" in row["attributes"]}


def kept(doc, batch=32) -> int:
    """Transient bytes that are alive when the backward begins."""
    alive = {}
    for event in doc["events"]:
        if event[0] == "a" and doc["storages"][event[1]][1] == "transient":
            alive[event[1]] = value(doc["storages"][event[1]][0], {"batch": batch})
        if event[0] == "f":
            alive.pop(event[1], None)
        if event == ["p", "backward"]:
            break
    return sum(alive.values())


def test_two_graphs_hold_the_model_and_the_loss_stays_eager(on_cuda):
    doc = check(capture(net, compile=True))
    assert doc["compiled"] == {"by": "inductor", "graphs": 2} and graphs(doc) == {1, 2}
    assert len(operators(doc, "aten::addmm")) == 5 and len(operators(doc, "aten::gelu")) == 0, "gelu is taken apart"
    assert all("c" not in row["attributes"] for row in operators(doc, "aten::_log_softmax"))


def test_what_is_kept_is_what_a_compiled_model_keeps_of_real_tensors():
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.decomposition import select_decomp_table

    doc = check(capture(net, compile=True, device="cpu"))

    def interpreted(graph, inputs):
        def run(given):
            return torch.fx.Interpreter(graph).boxed_run(given)

        run._boxed_call = True
        return run

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=interpreted, bw_compiler=interpreted, partition_fn=min_cut_rematerialization_partition,
                           decompositions=select_decomp_table())
    module, x = net()[0], torch.randn(32, 16)
    out = torch.compile(module, backend=backend, dynamic=False)(x)
    own = {t.untyped_storage()._cdata for t in (*module.parameters(), x)}
    held = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in out.grad_fn.saved_tensors}
    real = sum(size for storage, size in held.items() if storage not in own)
    loss = 32 * 4 * 4 + 4  # what eager cross entropy keeps: logarithms, and the sum of weights
    assert kept(doc) == real + loss


def test_a_layer_that_breaks_the_graph_runs_between_graphs(on_cuda):
    doc = check(capture(Capture(Recurrent(), torch.empty(4, 10, 8)), compile=True))
    (layer,) = operators(doc, "aten::_cudnn_rnn")
    assert "c" not in layer["attributes"]
    assert graphs(doc)


def test_modules_are_known(on_cuda):
    doc = check(capture(net, compile=True))
    assert {row["module"] for row in operators(doc, "aten::addmm")} == {"0.up", "0.down", "1.up", "1.down", "2"}
    assert {row["module"] for row in operators(doc, "aten::mm")} <= {"0.up", "0.down", "1.up", "1.down", "2"}


def test_what_the_code_compiles_itself_is_compiled_and_no_more(on_cuda):
    def in_place(batch=8):
        module, x = net(batch)
        module[1].compile()
        return module, x

    def wrapped(batch=8):
        module, x = net(batch)
        return torch.compile(module), x

    part = check(capture(in_place))
    rows = operators(part, "aten::addmm")
    assert [(row["module"], "c" in row["attributes"]) for row in rows] == [
        ("0.up", False), ("0.down", False), ("1.up", True), ("1.down", True), ("2", False)]
    assert graphs(check(capture(wrapped))) == {1, 2}


@pytest.mark.parametrize("path, name", [("L['fn'].0.ln", "0.ln"), ("L['self']._modules['layers']._modules['3'].attn", "layers.3.attn"),
                                        ("L['fn'].layers[2].mlp", "layers.2.mlp"), ("L['self']", "")])
def test_names_of_modules(path, name):
    assert compiled.module_name(path) == name


def test_an_old_pytorch_is_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    with pytest.raises(compiled.CaptureError, match="2.6 or newer"):
        compiled.check_version()
