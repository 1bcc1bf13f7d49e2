"""Freezes a model, puts adapters beside its layers, and packs its weights into four bits."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

from ..errors import CaptureError
from ..protocol import Capture
from .layers import Adapted, four_bit
from .wish import ALL_LINEAR, Adapters

# peft's defaults by a configuration's model_type (peft/utils/constants.py).
_TARGETS = {
    "t5": ("q", "v"), "mt5": ("q", "v"), "gpt2": ("c_attn",), "bloom": ("query_key_value",), "gpt_neox": ("query_key_value",),
    "falcon": ("query_key_value",), "bert": ("query", "value"), "roberta": ("query", "value"),
    "xlm-roberta": ("query", "value"), "electra": ("query", "value"), "deberta-v2": ("query_proj", "value_proj"),
    "phi": ("q_proj", "v_proj", "fc1", "fc2"), "mpt": ("Wqkv",), "gpt_bigcode": ("c_attn",),
}
_COMMON = (("q_proj", "v_proj"), ("query", "value"), ("c_attn",), ("query_key_value",), ("q", "v"), ("to_q", "to_v"))
_HEADS = ("lm_head", "embed_out", "cls", "classifier", "score", "head", "heads", "fc", "qa_outputs")
_TRAINED_HEADS = ("classifier", "score", "qa_outputs")  # new with each task: peft trains them whole
_HALF = {"amp-bf16": torch.bfloat16, "bf16": torch.bfloat16, "amp-fp16": torch.float16, "fp16": torch.float16}


def _sizes(layer: nn.Module) -> tuple | None:
    """(inputs, outputs) of a linear layer or of transformers' Conv1D; None of any other."""
    if type(layer).__name__ == "Conv1D" and hasattr(layer, "nf"):
        return layer.weight.shape[0], layer.weight.shape[1]
    return (layer.in_features, layer.out_features) if type(layer) is nn.Linear else None


def _linear_layers(model: nn.Module) -> dict:
    """Name -> (parent, name in it, layer). Attention of torch.nn reads its layers' weights itself, so they are left out."""
    found = {}
    for path, parent in model.named_modules():
        if isinstance(parent, nn.MultiheadAttention):
            continue
        for name, layer in parent.named_children():
            if _sizes(layer) is not None:
                found[f"{path}.{name}" if path else name] = (parent, name, layer)
    return found


def _is_head(path: str, model: nn.Module) -> bool:
    outputs = getattr(model, "get_output_embeddings", None)
    layer = outputs() if callable(outputs) else None
    return model.get_submodule(path) is layer if layer is not None else path.split(".")[0] in _HEADS


def _targets(wish: Adapters, model: nn.Module, layers: dict) -> tuple:
    if wish.targets:
        return wish.targets
    kind = str(getattr(getattr(model, "config", None), "model_type", ""))
    names = {path.rpartition(".")[2] for path in layers}
    for candidate in (*([_TARGETS[kind]] if kind in _TARGETS else []), *_COMMON):
        if names.issuperset(candidate):
            return candidate
    return (ALL_LINEAR,)


def _chosen(targets: tuple, model: nn.Module, layers: dict) -> list:
    if targets == (ALL_LINEAR,):
        chosen = [path for path in layers if not _is_head(path, model)]
    else:
        chosen = [path for path in layers if any(path == t or path.endswith("." + t) for t in targets)]
        missing = [t for t in targets if not any(path == t or path.endswith("." + t) for path in layers)]
        if missing:
            names = sorted({path.rpartition(".")[2] for path in layers if not path.rpartition(".")[2].isdigit()})
            raise CaptureError(f"--lora: no linear layer is called {missing[0]}; the model's are {', '.join(names[:16]) or 'none'}, "
                               f"or {ALL_LINEAR}")
    if not chosen:
        raise CaptureError("--lora: the model has no linear layer that could get an adapter")
    return chosen


def _narrow(model: nn.Module, dtype: torch.dtype) -> None:
    """What is not packed is held in the type that is computed in, as from_pretrained(torch_dtype=...) loads it."""
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point() and not getattr(tensor, "keeps_type", False):
            tensor.data = tensor.data.to(dtype)


def applied(capture: Capture, wish: Adapters, precision: str, label: str | None = None) -> Capture:
    """The capture with a frozen model and adapters on it, which alone are trained; the module is changed in place.

    `label` is what the model is called where the capture itself has no name.
    """
    model = capture.module
    layers = _linear_layers(model)
    targets = _targets(wish, model, layers)
    chosen = _chosen(targets, model, layers)
    heads = {path for path in layers if _is_head(path, model)}
    compute = _HALF.get(precision, torch.float32)
    model.requires_grad_(False)
    for name, part in model.named_modules():
        if name in _TRAINED_HEADS:
            part.requires_grad_(True)
    with torch.device(next(model.parameters()).device):
        if wish.four_bit:
            _narrow(model, compute)
        for path, (parent, name, layer) in layers.items():
            inputs, outputs = _sizes(layer)
            if wish.four_bit and path not in heads:
                layer = four_bit(inputs, outputs, layer.bias, compute)
            if path in chosen:
                layer = Adapted(layer, inputs, outputs, wish.rank, wish.dropout)
            setattr(parent, name, layer)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = type(capture.optimizer) if isinstance(capture.optimizer, (torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD)) \
        else torch.optim.AdamW
    return dataclasses.replace(capture, optimizer=optimizer(trained, lr=1e-4),
                               name=f"{capture.name or label or type(model).__name__}, {wish.words} on {', '.join(targets)}")
