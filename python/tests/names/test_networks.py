"""The package's own networks: published numbers of parameters, and transformers' operators and bytes where it is installed."""

import collections

import pytest

from steps import capture, check, operators, peak_bytes, value
from stoker import model_build, networks, zoo_models

PUBLISHED = {"bert_large": 335_174_458, "llama_3_8b": 8_030_261_248, "mistral_7b": 7_241_732_096,
             "qwen2_5_7b": 7_615_616_512, "whisper_small": 241_734_912, "sd_unet": 859_520_964, "unet": 31_037_698,
             "yolo_s": 11_166_544}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_zoos_models_have_their_published_parameters(name):
    module = model_build.build(getattr(zoo_models, name)).module
    assert sum(p.numel() for p in module.parameters()) == PUBLISHED[name]


@pytest.mark.parametrize("name", ["unet", "yolo_s"])
def test_networks_of_pictures_can_be_captured(on_cuda, name):
    doc = check(capture(getattr(zoo_models, name)))
    assert doc["dimensions"][0]["name"] == "batch" and not doc["diagnostics"].get("unfaithful")
    assert operators(doc, "aten::convolution") and operators(doc, "aten::convolution_backward")


SMALL = {"vocab_size": 400, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = SMALL | {"num_key_value_heads": 2, "head_dim": 16}
CONFIGURATIONS = {
    "llama": GROUPED, "mistral": GROUPED, "qwen2": GROUPED, "qwen3": GROUPED, "gemma": GROUPED,
    "gpt2": {"vocab_size": 400, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256}, "gpt_neox": SMALL, "bert": SMALL,
    "vit": {k: v for k, v in SMALL.items() if k != "vocab_size"} | {"image_size": 64, "patch_size": 16},
    "whisper": {"vocab_size": 400, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                "decoder_attention_heads": 4, "encoder_ffn_dim": 160, "decoder_ffn_dim": 160, "pad_token_id": 0,
                "decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2},
}
# Whether all positions follow each other is asked by transformers alone; it needs a few bytes for a moment.
ASKING = {"aten::cumsum", "aten::ne.Scalar", "aten::eq.Scalar", "aten::all", "aten::sub.Tensor", "aten::cat", "aten::add.Tensor",
          "aten::arange", "aten::new_zeros"}


def test_every_family_is_compared():
    assert set(CONFIGURATIONS) == set(networks.FAMILIES)


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("family", CONFIGURATIONS)
def test_a_family_asks_for_what_transformers_asks_for(on_cuda, family, precision, tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    from stoker.hub import known
    config = transformers.AutoConfig.for_model(family, **CONFIGURATIONS[family])
    config.architectures = [known._CLASSES[family]]
    config.save_pretrained(tmp_path)
    theirs = check(capture(f"hf:{tmp_path}", precision=precision))
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    ours = check(capture(f"hf:{tmp_path}", precision=precision))
    assert "not installed" in ours["diagnostics"]["unfaithful"][0]

    def weights(doc):
        return sum(value(doc["storages"][s][0], {}) for s in {p["storage"] for p in doc["parameters"]})

    def names(doc):
        return collections.Counter(row["name"] for row in operators(doc) if row["name"] not in ASKING)

    assert weights(ours) == weights(theirs)
    assert names(ours) == names(theirs)
    sizes = {"batch": 16} | ({"seq_len": 192} if len(ours["dimensions"]) > 1 else {})
    assert peak_bytes(ours, **sizes) == pytest.approx(peak_bytes(theirs, **sizes), rel=1e-3)
