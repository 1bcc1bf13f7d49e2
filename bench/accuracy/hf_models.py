"""Language models from configurations, with random weights that are never made: what measured tables name."""

import json
import pathlib

import torch
import transformers
from stoker import Capture

CONFIGS = pathlib.Path(__file__).with_name("hf_configs.json")
# Attributes of our tables -> configuration keys, by model type.
KEYS = {
    "gpt2": {"layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "ffn": "n_inner", "vocab": "vocab_size",
             "max_pos": "n_positions", "act": "activation_function"},
    "opt": {"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads", "ffn": "ffn_dim",
            "vocab": "vocab_size", "max_pos": "max_position_embeddings", "act": "activation_function"},
    "bert": {"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
             "ffn": "intermediate_size", "vocab": "vocab_size", "max_pos": "max_position_embeddings", "act": "hidden_act"},
}


def _config(name, shape, attention):
    if name is not None:
        known = json.loads(CONFIGS.read_text())
        if name not in known:
            raise ValueError(f"{name} is not in {CONFIGS.name}: add its configuration")
        values = dict(known[name])
        model_type = values.pop("model_type")
    else:
        values = dict(shape)
        model_type = values.pop("model_type")
        if model_type not in KEYS:
            raise ValueError(f"no table of configuration keys for the model type '{model_type}'")
        values = {KEYS[model_type][key]: value for key, value in values.items()}
    if attention:
        values["attn_implementation"] = attention
    config = transformers.AutoConfig.for_model(model_type, **values)
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = getattr(config, "pad_token_id", None) or 0
    return config


class _Labelled(torch.nn.Module):
    """A model whose labels are its own input, as in language modelling on raw text."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, tokens, mask):
        return self.model(input_ids=tokens, attention_mask=mask, labels=tokens)


def language_model(batch=8, seq_len=128, name=None, shape=None, attention=None):
    """Training on raw text: token ids, their mask, labels equal to the ids, the model's own loss."""
    config = _config(name, shape, attention)
    kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
    tokens = torch.zeros(batch, seq_len, dtype=torch.long)
    return Capture(_Labelled(kind.from_config(config)), (tokens, torch.ones_like(tokens)), name=name)


def forward_only(batch=8, seq_len=128, shape=None, attention=None):
    """Ids in, logits out; in training the sum of the outputs stands in for a loss."""
    config = _config(None, shape, attention)
    masked = config.model_type == "bert"
    kind = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    model = kind.from_config(config)
    return Capture(model, {"input_ids": torch.zeros(batch, seq_len, dtype=torch.long)})
