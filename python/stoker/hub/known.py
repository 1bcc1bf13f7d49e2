"""Configurations of models that many train, by their names on the hub: so that a gated model, or no network, is no obstacle.

Only what decides sizes is here. python/tests/names checks each against the published number of parameters.
"""

from __future__ import annotations

import re


def _decoder(kind, vocab, width, inner, layers, heads, groups, longest, tied=False, **more):
    return {"model_type": kind, "vocab_size": vocab, "hidden_size": width, "intermediate_size": inner,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": groups,
            "max_position_embeddings": longest, "tie_word_embeddings": tied, "rms_norm_eps": 1e-5, **more}


def _gpt2(width, layers, heads):
    return {"model_type": "gpt2", "vocab_size": 50257, "n_embd": width, "n_layer": layers, "n_head": heads, "n_positions": 1024}


def _pythia(width, layers, heads, vocab=50304):
    return {"model_type": "gpt_neox", "vocab_size": vocab, "hidden_size": width, "intermediate_size": 4 * width,
            "num_hidden_layers": layers, "num_attention_heads": heads, "max_position_embeddings": 2048, "rotary_pct": 0.25,
            "tie_word_embeddings": False, "attention_dropout": 0.0, "hidden_dropout": 0.0}


def _bert(width, layers, heads, vocab=30522):
    return {"model_type": "bert", "vocab_size": vocab, "hidden_size": width, "intermediate_size": 4 * width,
            "num_hidden_layers": layers, "num_attention_heads": heads, "max_position_embeddings": 512}


def _vit(width, layers, heads):
    return {"model_type": "vit", "hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers,
            "num_attention_heads": heads, "image_size": 224, "patch_size": 16, "num_labels": 1000}


def _whisper(width, layers, heads, vocab=51865, mels=80):
    return {"model_type": "whisper", "vocab_size": vocab, "d_model": width, "encoder_layers": layers, "decoder_layers": layers,
            "encoder_attention_heads": heads, "decoder_attention_heads": heads, "encoder_ffn_dim": 4 * width,
            "decoder_ffn_dim": 4 * width, "num_mel_bins": mels, "max_source_positions": 1500, "max_target_positions": 448}


_LLAMA_3_8B = _decoder("llama", 128256, 4096, 14336, 32, 32, 8, 8192)
_LLAMA_3_70B = _decoder("llama", 128256, 8192, 28672, 80, 64, 8, 8192)
_LONG = {"max_position_embeddings": 131072}
_QWEN = {"1.5b": (1536, 8960, 28, 12, 2, True), "3b": (2048, 11008, 36, 16, 2, True), "0.5b": (896, 4864, 24, 14, 2, True),
         "7b": (3584, 18944, 28, 28, 4, False), "14b": (5120, 13824, 48, 40, 8, False), "32b": (5120, 27648, 64, 40, 8, False),
         "72b": (8192, 29568, 80, 64, 8, False)}
_QWEN3 = {"0.6b": (1024, 3072, 28, 16, 8, True), "1.7b": (2048, 6144, 28, 16, 8, True), "4b": (2560, 9728, 36, 32, 8, True),
          "8b": (4096, 12288, 36, 32, 8, False)}

_TABLE = {
    "meta-llama/llama-2-7b-hf": _decoder("llama", 32000, 4096, 11008, 32, 32, 32, 4096),
    "meta-llama/llama-2-13b-hf": _decoder("llama", 32000, 5120, 13824, 40, 40, 40, 4096),
    "meta-llama/llama-2-70b-hf": _decoder("llama", 32000, 8192, 28672, 80, 64, 8, 4096),
    "meta-llama/meta-llama-3-8b": _LLAMA_3_8B, "meta-llama/meta-llama-3-70b": _LLAMA_3_70B,
    "meta-llama/llama-3.1-8b": _LLAMA_3_8B | _LONG, "meta-llama/llama-3.1-70b": _LLAMA_3_70B | _LONG,
    "meta-llama/llama-3.3-70b": _LLAMA_3_70B | _LONG,
    "meta-llama/llama-3.2-1b": _decoder("llama", 128256, 2048, 8192, 16, 32, 8, 131072, True),
    "meta-llama/llama-3.2-3b": _decoder("llama", 128256, 3072, 8192, 28, 24, 8, 131072, True, head_dim=128),
    "tinyllama/tinyllama-1.1b-chat-v1.0": _decoder("llama", 32000, 2048, 5632, 22, 32, 4, 2048),
    "mistralai/mistral-7b-v0.1": _decoder("mistral", 32000, 4096, 14336, 32, 32, 8, 32768),
    "mistralai/mistral-7b-v0.3": _decoder("mistral", 32768, 4096, 14336, 32, 32, 8, 32768),
    "google/gemma-2b": _decoder("gemma", 256000, 2048, 16384, 18, 8, 1, 8192, True, head_dim=256, hidden_act="gelu_pytorch_tanh"),
    "google/gemma-7b": _decoder("gemma", 256000, 3072, 24576, 28, 16, 16, 8192, True, head_dim=256,
                                hidden_act="gelu_pytorch_tanh"),
    "openai-community/gpt2": _gpt2(768, 12, 12), "openai-community/gpt2-medium": _gpt2(1024, 24, 16),
    "openai-community/gpt2-large": _gpt2(1280, 36, 20), "openai-community/gpt2-xl": _gpt2(1600, 48, 25),
    "eleutherai/pythia-70m": _pythia(512, 6, 8), "eleutherai/pythia-160m": _pythia(768, 12, 12),
    "eleutherai/pythia-410m": _pythia(1024, 24, 16), "eleutherai/pythia-1b": _pythia(2048, 16, 8),
    "eleutherai/pythia-1.4b": _pythia(2048, 24, 16), "eleutherai/pythia-2.8b": _pythia(2560, 32, 32),
    "eleutherai/pythia-6.9b": _pythia(4096, 32, 32, 50432), "eleutherai/pythia-12b": _pythia(5120, 36, 40, 50688),
    "google-bert/bert-base-uncased": _bert(768, 12, 12), "google-bert/bert-large-uncased": _bert(1024, 24, 16),
    "google-bert/bert-base-cased": _bert(768, 12, 12, 28996), "google-bert/bert-large-cased": _bert(1024, 24, 16, 28996),
    "google/vit-base-patch16-224": _vit(768, 12, 12), "google/vit-large-patch16-224": _vit(1024, 24, 16),
    "openai/whisper-tiny": _whisper(384, 4, 6), "openai/whisper-base": _whisper(512, 6, 8),
    "openai/whisper-small": _whisper(768, 12, 12), "openai/whisper-medium": _whisper(1024, 24, 16),
    "openai/whisper-large-v3": _whisper(1280, 32, 20, 51866, 128),
}
_TABLE |= {f"qwen/qwen2.5-{size}": _decoder("qwen2", 152064 if size in ("7b", "14b", "32b", "72b") else 151936, *numbers[:5],
                                            32768 if size in ("0.5b", "1.5b", "3b") else 131072, numbers[5])
           for size, numbers in _QWEN.items()}
_TABLE |= {f"qwen/qwen3-{size}": _decoder("qwen3", 151936, *numbers[:5], 40960, numbers[5], head_dim=128)
           for size, numbers in _QWEN3.items()}

_OLD_NAMES = {"gpt2": "openai-community/gpt2", "gpt2-medium": "openai-community/gpt2-medium",
              "gpt2-large": "openai-community/gpt2-large", "gpt2-xl": "openai-community/gpt2-xl",
              "bert-base-uncased": "google-bert/bert-base-uncased", "bert-large-uncased": "google-bert/bert-large-uncased",
              "bert-base-cased": "google-bert/bert-base-cased", "bert-large-cased": "google-bert/bert-large-cased",
              "mistralai/mistral-7b-v0.2": "mistralai/mistral-7b-v0.1"}
_TUNED = ("-chat-hf", "-chat", "-instruct", "-it", "-base")  # the same sizes, trained further
_TUNED_WITH_VERSION = ("mistralai/mistral-7b-instruct-", "mistralai/mistral-7b-")
_CLASSES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM",
            "qwen3": "Qwen3ForCausalLM", "gemma": "GemmaForCausalLM", "gpt2": "GPT2LMHeadModel",
            "gpt_neox": "GPTNeoXForCausalLM", "bert": "BertForMaskedLM", "vit": "ViTForImageClassification",
            "whisper": "WhisperForConditionalGeneration"}


def names() -> list:
    return sorted(_TABLE)


def _bare(name: str) -> str:
    """What names of one model have in common: without the organisation, the maker's own prefix, version of the weights and signs."""
    last = name.rpartition("/")[2].removeprefix("meta-").removesuffix("-hf")
    return re.sub(r"[^a-z0-9]", "", re.sub(r"-v\d.*$", "", last))


_BARE = {}
for _listed in reversed(_TABLE):  # of Mistral's versions the first, whose vocabulary most derived models have
    _BARE[_bare(_listed)] = _listed


def configuration(name: str) -> dict | None:
    """The configuration of ORG/NAME, whatever its case, tuned or not, or of NAME alone; None of a model that is not listed."""
    key = name.lower().replace(*_TUNED_WITH_VERSION)
    key = _OLD_NAMES.get(key, key)
    for ending in _TUNED:
        if key not in _TABLE and key.endswith(ending):
            key = key.removesuffix(ending) + ("-hf" if ending == "-chat-hf" else "")
    if key not in _TABLE:
        near = _BARE.get(_bare(key), "")
        if "/" not in key or key.partition("/")[0] == near.partition("/")[0]:
            key = near
    config = _TABLE.get(key)
    return None if config is None else config | {"architectures": [_CLASSES[config["model_type"]]]}
