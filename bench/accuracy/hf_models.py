"""Language models from configurations, with random weights that are never made: what measured tables name."""

import json
import pathlib
import sys
import types

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
    "switch_transformers": {"layers": "num_layers", "hidden": "d_model", "heads": "num_heads", "ffn": "d_ff",
                            "vocab": "vocab_size", "act": "dense_act_fn", "d_kv": "d_kv", "num_experts": "num_experts",
                            "expert_capacity": "expert_capacity"},
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
    if model_type == "switch_transformers":  # as many decoder as encoder layers, every other one of experts
        layers = values["num_layers"]
        values |= {"num_decoder_layers": layers, "num_sparse_encoder_layers": layers // 2,
                   "num_sparse_decoder_layers": layers // 2, "decoder_start_token_id": 0}
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


def _full_experts(sparse, hidden):
    """The sparse layer of a Switch transformer with every expert filled to its capacity.

    Which tokens an expert takes depends on data, of which a capture has none; how many it takes at most does not.
    Transformers up to 4.56 picks them by a mask of truth values, `out[mask] = expert(hidden[mask])`; each such index
    makes the host wait for the number of its elements.
    """
    probabilities, chosen = sparse.router.classifier(hidden).softmax(dim=-1).max(dim=-1, keepdim=True)
    mask = torch.zeros_like(hidden[..., :sparse.router.num_experts]).scatter_(-1, chosen, 1)
    mask = mask * (mask.cumsum(dim=-2) <= sparse.router.expert_capacity)
    out, capacity = hidden.clone(), min(sparse.router.expert_capacity, hidden.shape[1])
    for number, expert in enumerate(sparse.experts.values()):
        own = mask[..., number].bool()
        own.sum(dtype=torch.float32).item()
        tokens = expert(hidden[:, :capacity].contiguous())
        own.sum(dtype=torch.float32).item()
        out[:, :capacity] = tokens
    return probabilities * out


def _fill_experts(model):
    for module in model.modules():
        if type(module).__name__ == "SwitchTransformersSparseMLP":
            module.forward = types.MethodType(_full_experts, module)


class _Dropout(torch.autograd.Function):
    """Dropout whose backward is built of plain operators, as autograd's is while it records a graph of gradients:
    the table's operator times show a backward of 25 bytes an element on every GPU, not the fused kernel's 9."""

    @staticmethod
    def forward(ctx, x, p):
        out, mask = torch.native_dropout(x, p, True)
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - p)
        return out

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * (mask.type_as(grad) * ctx.scale), None


def _dropout(x, p, training):
    return _Dropout.apply(x, p) if training and p > 0 else x


def _attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, position_bias=None, **kwargs):
    """Eager attention as transformers computed it up to 4.47, operator by operator as the table lists them."""
    kind = type(module).__name__
    scores = torch.matmul(query, key.transpose(-1, -2))
    if kind.startswith(("GPT2", "Bert")):
        scores = scores / query.size(-1) ** 0.5
    if kind.startswith("GPT2"):  # a mask of truth values that each layer keeps
        length = key.size(-2)
        scores = torch.where(module.measured_mask[:, :, :length, :length], scores, torch.finfo(scores.dtype).min)
    else:
        if attention_mask is None:
            attention_mask = scores.new_zeros(scores.size(0), 1, 1, scores.size(-1))
        scores = scores + (attention_mask if position_bias is None else position_bias)
    if kind.startswith("OPT"):
        scores = torch.max(scores, scores.new_full((), torch.finfo(scores.dtype).min))
    weights = _dropout(scores.softmax(dim=-1), dropout, module.training)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


def _as_measured(model):
    """The model with the operators of the software that the table was measured with."""
    for module in list(model.modules()):
        name = type(module).__name__
        if name.endswith("Attention"):
            sys.modules[type(module).__module__].eager_attention_forward = _attention
        if name == "GPT2Attention":
            side = model.config.n_positions
            module.register_buffer("measured_mask", torch.ones(1, 1, side, side, dtype=torch.bool), persistent=False)
        if name == "Dropout":
            module.forward = types.MethodType(lambda self, x: _dropout(x, self.p, self.training), module)
    return model


def forward_only(batch=8, seq_len=128, shape=None, attention=None):
    """Ids in, logits out; in training the sum of the outputs stands in for a loss."""
    config = _config(None, shape, attention)
    tokens = torch.zeros(batch, seq_len, dtype=torch.long)
    if config.is_encoder_decoder:
        model = transformers.AutoModelForSeq2SeqLM.from_config(config)
        _fill_experts(model)
        return Capture(_as_measured(model), {"input_ids": tokens, "decoder_input_ids": torch.zeros_like(tokens)})
    masked = config.model_type == "bert"
    kind = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    return Capture(_as_measured(kind.from_config(config)), {"input_ids": tokens})


class _Answering(torch.nn.Module):
    """Question answering as in SQuAD fine-tuning: where the answer starts and ends is known."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, tokens, segments, mask, starts, ends):
        return self.model(input_ids=tokens, token_type_ids=segments, attention_mask=mask, start_positions=starts,
                          end_positions=ends)


def question_answering(batch=8, seq_len=384, shape=None, attention=None):
    """SQuAD fine-tuning of a BERT."""
    config = _config(None, shape, attention)
    tokens = torch.zeros(batch, seq_len, dtype=torch.long)
    place = torch.zeros(batch, dtype=torch.long)
    return Capture(_Answering(transformers.AutoModelForQuestionAnswering.from_config(config)),
                   (tokens, torch.zeros_like(tokens), torch.ones_like(tokens), place, place.clone()))
