"""GRU, LSTM and RNN are cuDNN's one operator, with weights in one buffer."""

import pytest
import torch
from torch import nn

from steps import capture, check, operators, shape, value
from stoker import Capture, zoo_models


class Recurrent(nn.Module):
    def __init__(self, kind, **settings):
        super().__init__()
        self.rnn = kind(6, 16, batch_first=True, **settings)
        self.head = nn.Linear(16 * (2 if settings.get("bidirectional") else 1), 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


@pytest.mark.parametrize("kind, mode, gates", [(nn.GRU, "gru", 3), (nn.LSTM, "lstm", 4), (nn.RNN, "rnn_tanh", 1)])
def test_one_operator_and_one_weight_buffer(on_cuda, kind, mode, gates):
    doc = check(capture(Capture(Recurrent(kind, num_layers=2, bidirectional=True), torch.empty(4, 9, 6))))
    forward, = operators(doc, "aten::_cudnn_rnn")
    backward, = operators(doc, "aten::_cudnn_rnn_backward")
    assert forward["attributes"]["mode"] == mode and forward["attributes"]["layers"] == 2
    assert forward["attributes"]["bidirectional"] is True and forward["link"] == backward["link"] > 0
    numbers = 2 * (gates * 16 * (6 + 16 + 2)) + 2 * (gates * 16 * (32 + 16 + 2))
    buffers = {p["storage"] for p in doc["parameters"] if p["name"].startswith("rnn")}
    assert [doc["storages"][s][0] for s in buffers] == [4 * numbers]
    assert shape(forward["inputs"][1], batch=4) == [numbers] and forward["inputs"][1]["storage"] in buffers
    gradients = {p["gradient"] for p in doc["parameters"] if p["name"].startswith("rnn")}
    assert [doc["storages"][s] for s in gradients] == [[4 * numbers, "gradient"]]
    reserve = forward["outputs"][-1]
    assert doc["storages"][reserve["storage"]][0] == 0
    assert reserve["storage"] in [t["storage"] for t in backward["inputs"]], "kept for the backward"


def test_autocast_copies_the_weights_into_one_buffer(on_cuda):
    doc = check(capture(Capture(Recurrent(nn.GRU), torch.empty(4, 9, 6)), precision="amp-fp16"))
    forward, = operators(doc, "aten::_cudnn_rnn")
    assert {t["dtype"] for t in forward["inputs"]} == {"f16"}
    assert doc["storages"][forward["inputs"][1]["storage"]] == [2 * 3 * 16 * (6 + 16 + 2), "transient"]
    gradients = {p["gradient"] for p in doc["parameters"]}
    assert all(doc["storages"][g][1] == "gradient" for g in gradients)


def test_cells_have_their_fused_operators(on_cuda):
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(6, 16)

        def forward(self, x):
            return self.cell(x)

    names = [row["name"] for row in operators(check(capture(Capture(Cell(), torch.empty(4, 6)))))]
    assert names.count("aten::_thnn_fused_gru_cell") == 1 and names.count("aten::_thnn_fused_gru_cell_backward") == 1


def test_translation_has_vocabulary_and_length_as_dimensions(on_cuda):
    doc = check(capture(zoo_models.gru_seq2seq))
    assert [d["name"] for d in doc["dimensions"]] == ["batch", "seq_len", "vocab"]
    head = next(p for p in doc["parameters"] if p["name"] == "head.weight")
    sizes = {"batch": 2, "seq_len": 5, "vocab": 30_000}
    assert value(doc["storages"][head["storage"]][0], sizes) == 4 * 128 * 30_000
    logits = next(row for row in operators(doc, "aten::addmm") if row["module"] == "head")["outputs"][0]
    assert shape(logits, **sizes) == [10, 30_000]
    assert [row["module"] for row in operators(doc, "aten::_cudnn_rnn")] == ["encoder", "decoder"]
