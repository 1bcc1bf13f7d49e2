"""The capture function of a configuration: through transformers where it is installed, else by networks of our own."""

from __future__ import annotations

import torch

from .. import networks
from ..errors import CaptureError
from ..polynomial import Dimension
from ..protocol import SEQUENCE_DEGREE, Capture
from . import configurations

DEFAULT_SEQ_LEN = 512
LABEL_TOKENS = 64  # of a transcript, for models that turn speech into text
_LIMITS = ("max_position_embeddings", "n_positions", "max_target_positions", "n_ctx")


def longest(config: dict) -> int | None:
    """Words that the model can take, where it says so. RoBERTa's kind counts positions from beyond its padding."""
    sizes = [config[key] for key in _LIMITS if isinstance(config.get(key), int) and config[key] > 0]
    if not sizes:
        return None
    offset = int(config.get("pad_token_id") or 0) + 1 if config["model_type"] in ("roberta", "xlm-roberta", "camembert") else 0
    return sizes[0] - offset


def _ids(batch: int, length: int) -> torch.Tensor:
    return torch.zeros(batch, length, dtype=torch.long)


def _text(build, config: dict, label: str):
    limit = longest(config)
    default = min(DEFAULT_SEQ_LEN, limit or DEFAULT_SEQ_LEN)

    def language_model(batch=8, seq_len=default):
        model = build()
        per_sequence = type(model).__name__.endswith(("ForSequenceClassification", "ForMultipleChoice"))
        inputs = {"input_ids": _ids(batch, seq_len),
                  "labels": torch.zeros(batch, dtype=torch.long) if per_sequence else _ids(batch, seq_len)}
        return Capture(model, inputs, optimizer=torch.optim.AdamW([p for p in model.parameters() if p.requires_grad]),
                       name=label, dimensions=[Dimension("seq_len", seq_len, degree=SEQUENCE_DEGREE, max=limit)],
                       sample={"what": "sequence", "tokens": {"seq_len": 1}})

    return language_model


def _image(build, config: dict, label: str):
    side, channels = config.get("image_size", 224), config.get("num_channels", 3)
    height, width = side if isinstance(side, list) else (side, side)

    def image_model(batch=32):
        model = build()
        inputs = {"pixel_values": torch.empty(batch, channels, height, width)}
        if "Classification" in type(model).__name__ or "Classifier" in type(model).__name__:
            inputs["labels"] = torch.zeros(batch, dtype=torch.long)
        return Capture(model, inputs, optimizer=torch.optim.AdamW(model.parameters()), name=label, sample={"what": "image"})

    return image_model


def _speech(build, config: dict, label: str):
    def speech_model(batch=8):
        model = build()
        if config["model_type"] == "whisper":
            frames = 2 * config.get("max_source_positions", 1500)
            inputs = {"input_features": torch.empty(batch, config.get("num_mel_bins", 80), frames),
                      "labels": _ids(batch, LABEL_TOKENS)}
        else:
            inputs = {"input_values": torch.empty(batch, 16000 * 10), "labels": _ids(batch, LABEL_TOKENS)}
        return Capture(model, inputs, optimizer=torch.optim.AdamW(model.parameters()), name=label,
                       sample={"what": "recording"})

    return speech_model


_IMAGE_TYPES = ("vit", "deit", "beit", "swin", "swinv2", "convnext", "convnextv2", "resnet", "dinov2", "mobilenet_v2",
                "mobilevit", "segformer", "regnet", "efficientnet")
_SPEECH_TYPES = ("whisper",)


def _own(config: dict, name: str):
    kind = config["model_type"]
    if kind not in networks.FAMILIES:
        known = ", ".join(sorted(networks.FAMILIES))
        raise CaptureError(f"hf:{name} is of the family '{kind}', which needs transformers (pip install transformers); "
                           f"without it there are {known}")

    def build():
        try:
            return networks.build(config)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise CaptureError(f"the configuration of hf:{name} cannot be built ({reason}): download it again, or install "
                               "transformers") from None

    return build


def _of_transformers(transformers, config: dict, path, name: str):
    """The class that the configuration names, built without weights; its head is the one that was trained last."""
    architecture = (config.get("architectures") or [""])[0]
    kind = getattr(transformers, architecture, None)
    if config.get("auto_map") and kind is None:
        raise CaptureError(f"hf:{name} brings its own code ({architecture or 'auto_map'}), which is not run unasked: "
                           "give a FILE.py:FUNCTION that builds it with trust_remote_code=True")
    try:
        settings = transformers.AutoConfig.for_model(**config) if path is None else transformers.AutoConfig.from_pretrained(str(path))
    except (ValueError, KeyError, OSError, TypeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CaptureError(f"hf:{name}: transformers {transformers.__version__} makes no configuration of model_type "
                           f"{config.get('model_type')!r} ({reason[:160]}): update it (pip install --upgrade transformers), or give a "
                           "FILE.py:FUNCTION that builds the model") from None
    if hasattr(settings, "use_cache"):
        settings.use_cache = False  # as transformers' Trainer sets it: keys and values serve generating alone

    def build():
        if kind is not None:
            model = kind(settings)
        else:
            model = transformers.AutoModelForCausalLM.from_config(settings)
        return model.train()

    return build


def capture_function(name: str):
    """(label, capture function, what to say of it) of the model that is called `name` on the hub or on this computer."""
    found = configurations.find(name)
    path, config = (None, found) if isinstance(found, dict) else (found, configurations.read(found))
    label = name.rstrip("/").removesuffix("/config.json")
    note = None
    try:
        import transformers
    except ImportError:
        build = _own(config, name)
        note = f"built by Stoker's own {config['model_type']} from its configuration, since transformers is not installed"
    else:
        build = _of_transformers(transformers, config, path, name)
    kind = config["model_type"]
    make = _image if kind in _IMAGE_TYPES else _speech if kind in _SPEECH_TYPES else _text
    return label, make(build, config, label), note
