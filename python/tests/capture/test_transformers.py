"""Hugging Face models from configurations. Skipped without transformers."""

import pytest

from steps import capture, check, operators, shape, value
from stoker import zoo_models

transformers = pytest.importorskip("transformers")


def small_gpt2(batch=4, seq_len=32):
    import torch
    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=500)
    ids = torch.zeros(batch, seq_len, dtype=torch.long)
    return transformers.GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids.clone()}


def test_gpt2(on_cuda):
    doc = check(capture(small_gpt2))
    assert doc["dimensions"][1]["name"] == "seq_len" and doc["dimensions"][1]["max"] == 1024
    assert [row["module"] for row in operators(doc, "stoker::attention")] == ["transformer.h.0.attn", "transformer.h.1.attn"]
    assert [i["name"] for i in doc["inputs"]] == ["input_ids", "labels"]
    assert "unfaithful" not in doc["diagnostics"], "the model's own loss is used"
    names = [p["name"] for p in doc["parameters"]]
    assert "lm_head.weight" not in names, "tied with the embedding"


def test_the_zoos_decoder_has_the_parameters_that_it_says(on_cuda):
    doc = check(capture(zoo_models.llama_1b, fixed={"batch": 1, "seq_len": 16}))
    storages = {p["storage"] for p in doc["parameters"]}
    assert sum(value(doc["storages"][s][0], {}) for s in storages) == 4 * 1_235_814_400
    attention = operators(doc, "stoker::attention")[0]
    assert [shape(t) for t in attention["inputs"][:3]][0] == [1, 32, 16, 64]
