"""hf:ORG/NAME: the configuration is found, and the model built, without a network."""

import json

import pytest

from steps import capture, check, operators, value
from stoker import CaptureError
from stoker.hub import configurations, known

SMALL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 320, "hidden_size": 64,
         "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 256, "tie_word_embeddings": False, "rms_norm_eps": 1e-5}
WEIGHTS = 2 * 320 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160 + 2 * 64) + 64


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    return tmp_path


def weights(doc):
    return sum(value(doc["storages"][s][0], {}) for s in {p["storage"] for p in doc["parameters"]}) // 4


@pytest.mark.parametrize("whole", [True, False])
def test_a_folder_and_its_config_are_one_model(on_cuda, folder, whole):
    doc = check(capture(f"hf:{folder}" if whole else f"hf:{folder}/config.json"))
    assert weights(doc) == WEIGHTS
    assert doc["name"] == str(folder)
    assert [(d["name"], d["default"], d.get("max")) for d in doc["dimensions"]] == [("batch", 8, None), ("seq_len", 256, 256)]
    assert doc["optimizer"]["name"] == "adamw", "what such models are trained with"
    assert len(operators(doc, "stoker::attention")) == 2
    assert {row["attributes"].get("causal") for row in operators(doc, "stoker::attention")} == {True}


def test_the_cache_of_the_hub_serves_by_name(on_cuda, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    entry = tmp_path / "models--some--model"
    (entry / "snapshots" / "abc").mkdir(parents=True)
    (entry / "snapshots" / "old").mkdir()
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text("abc\n")
    (entry / "snapshots" / "abc" / "config.json").write_text(json.dumps(SMALL))
    (entry / "snapshots" / "old" / "config.json").write_text(json.dumps(SMALL | {"vocab_size": 1}))
    assert weights(capture("hf:some/model")) == WEIGHTS


def test_what_is_nowhere_is_refused_with_the_cure(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(CaptureError, match="pip install huggingface_hub.*give a folder with its config.json"):
        capture("hf:nobody/nothing")


@pytest.mark.parametrize("content, words", [
    ("{", "cannot be read as a configuration"),
    ("[]", "names no model_type"),
    ('{"_class_name": "UNet2DConditionModel"}', "names no model_type"),
    (json.dumps({k: v for k, v in SMALL.items() if k != "hidden_size"} | {"model_type": "mamba9"}), "mamba9"),
])
def test_bad_configurations_are_named(tmp_path, content, words):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(CaptureError, match=words):
        capture(f"hf:{tmp_path}")


def test_a_folder_without_one_and_an_odd_name_are_refused(tmp_path):
    with pytest.raises(CaptureError, match="has no config.json"):
        configurations.find(str(tmp_path))
    with pytest.raises(CaptureError, match="neither a folder"):
        configurations.find("a/b/c")


def test_missing_numbers_are_named_where_transformers_is_absent(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in SMALL.items() if k != "intermediate_size"}))
    with pytest.raises(CaptureError, match="it has no 'intermediate_size'"):
        capture(f"hf:{tmp_path}")


# Parameters as the models' cards and papers give them, to the last one where they do.
PUBLISHED = {
    "meta-llama/Llama-2-7b-hf": 6_738_415_616, "meta-llama/Llama-2-13b-chat-hf": 13_015_864_320,
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248, "meta-llama/Llama-3.1-70B": 70_553_706_496,
    "meta-llama/Llama-3.2-1B": 1_235_814_400, "meta-llama/Llama-3.2-3B-Instruct": 3_212_749_824,
    "mistralai/Mistral-7B-Instruct-v0.2": 7_241_732_096, "mistralai/Mistral-7B-v0.3": 7_248_023_552,
    "Qwen/Qwen2.5-0.5B": 494_032_768, "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304, "Qwen/Qwen2.5-7B": 7_615_616_512,
    "Qwen/Qwen2.5-14B": 14_770_033_664, "Qwen/Qwen2.5-32B": 32_763_876_352, "Qwen/Qwen2.5-72B": 72_706_203_648,
    "Qwen/Qwen3-0.6B": 596_049_920, "Qwen/Qwen3-8B": 8_190_735_360, "google/gemma-2b-it": 2_506_172_416,
    "google/gemma-7b": 8_537_680_896, "gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200, "EleutherAI/pythia-70m": 70_426_624, "EleutherAI/pythia-1.4b": 1_414_647_808,
    "EleutherAI/pythia-12b": 11_846_072_320, "bert-base-uncased": 109_514_298, "bert-large-uncased": 335_174_458,
    "google/vit-base-patch16-224": 86_567_656, "google/vit-large-patch16-224": 304_326_632,
    "openai/whisper-tiny": 37_760_640, "openai/whisper-small": 241_734_912, "openai/whisper-large-v3": 1_543_490_560,
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": 1_100_048_384,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_well_known_models_have_their_published_parameters(name):
    from stoker import model_build, networks

    holder = model_build.build(lambda: [networks.build(known.configuration(name))])
    assert sum(p.numel() for p in holder[0].parameters()) == PUBLISHED[name]


def test_a_model_that_is_not_listed_is_not_guessed():
    assert known.configuration("meta-llama/Llama-9-8B") is None
