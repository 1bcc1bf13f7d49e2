"""torchvision's models by name. Skipped without torchvision."""

import pytest

from steps import capture, check, operators, value
from stoker import step_file

torchvision = pytest.importorskip("torchvision")


def test_resnet50(on_cuda):
    doc = check(capture("torchvision:resnet50"))
    sizes = [value(doc["storages"][p["storage"]][0], {"batch": 1}) for p in doc["parameters"]]
    assert sum(sizes) == 4 * 25_557_032  # torchvision's own count
    assert len(operators(doc, "aten::convolution")) == 53
    assert len(step_file.encode(doc)) < 300_000
    assert doc["provenance"]["libraries"] == {"torchvision": torchvision.__version__}


def test_vision_transformer_keeps_attention(on_cuda):
    doc = check(capture("torchvision:vit_b_16", fixed={"batch": 2}, precision="amp-bf16"))
    assert len(operators(doc, "stoker::attention")) == len(operators(doc, "stoker::attention_backward")) == 12


def test_near_names(on_cuda):
    from stoker.errors import CaptureError
    with pytest.raises(CaptureError, match="did you mean resnet50"):
        capture("torchvision:resnet5O")
