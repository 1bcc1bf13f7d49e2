"""Well-known families of networks, built from the numbers of a `config.json` of Hugging Face's hub without transformers.

They have transformers' module names, operators and order of allocations, so that a capture of one asks a GPU for what the
library's own class would ask for; python/tests/names compares the two where transformers is installed. No weight is ever
filled, and nothing is generated with them.
"""

from __future__ import annotations

from . import bert, decoder, gpt2, gpt_neox, vit, whisper

FAMILIES = {
    "llama": decoder.causal_language_model, "mistral": decoder.causal_language_model,
    "qwen2": decoder.causal_language_model, "qwen3": decoder.causal_language_model,
    "gemma": decoder.causal_language_model,
    "gpt2": gpt2.causal_language_model, "gpt_neox": gpt_neox.causal_language_model,
    "bert": bert.masked_language_model, "vit": vit.image_classifier,
    "whisper": whisper.speech_to_text,
}


def build(config: dict):
    """The module of a configuration whose "model_type" is one of FAMILIES."""
    return FAMILIES[config["model_type"]](config)
