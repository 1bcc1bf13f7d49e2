"""What is said of adapters: r=16,targets=q_proj,v_proj,alpha=32,dropout=0.05."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import CaptureError

ALL_LINEAR = "all-linear"
LARGEST_RANK = 8192
_KEYS = ("r", "targets", "alpha", "dropout")
_ALIASES = {"rank": "r", "lora_r": "r", "lora_rank": "r", "target_modules": "targets", "target": "targets",
            "modules": "targets", "lora_alpha": "alpha", "lora_dropout": "dropout"}
DEFAULT_RANK = 8  # peft's LoraConfig


@dataclass(frozen=True)
class Adapters:
    """The rank, the names of the layers that get an adapter (empty: peft's for the family), and whether the base is in NF4."""

    rank: int = DEFAULT_RANK
    targets: tuple = ()
    dropout: float = 0.0
    four_bit: bool = False

    @property
    def words(self) -> str:
        return f"{'QLoRA' if self.four_bit else 'LoRA'} r={self.rank}"


def _refuse(text: str, why: str):
    raise CaptureError(f"--lora {text}: {why}; write r=16, or r=16,targets=q_proj,v_proj,dropout=0.05")


def _number(text: str, key: str, value: str, kind):
    try:
        return kind(value)
    except ValueError:
        return _refuse(text, f"{key} is '{value}' where a number belongs")


def parse(text: str | None, four_bit: bool) -> Adapters | None:
    """None where neither was asked for. Words without '=' belong to the targets before them; a number alone is the rank."""
    if text is None and not four_bit:
        return None
    given: dict = {}
    key = None
    for word in filter(None, (part.strip() for part in (text or "").replace("+", ",").split(","))):
        name, equals, value = word.partition("=")
        if equals:
            key = _ALIASES.get(name.strip().replace("-", "_"), name.strip())
            if key not in _KEYS:
                _refuse(text, f"'{name}' is none of {', '.join(_KEYS)}")
            if key in given:
                _refuse(text, f"{key} is given twice")
            given[key] = [value.strip()]
        elif key == "targets":
            given[key].append(word)
        elif not given and word.isdigit():
            given["r"] = [word]
        else:
            _refuse(text, f"'{word}' has no name")
    rank = _number(text, "r", given["r"][0], int) if "r" in given else DEFAULT_RANK
    dropout = _number(text, "dropout", given["dropout"][0], float) if "dropout" in given else 0.0
    if not 1 <= rank <= LARGEST_RANK:
        _refuse(text, f"the rank must be 1 to {LARGEST_RANK}")
    if not 0 <= dropout < 1:
        _refuse(text, "the dropout must be from 0 to below 1")
    targets = tuple(t.strip("[]'\" ") for t in given.get("targets", []))
    if targets == ("",):
        _refuse(text, "targets is empty")
    return Adapters(rank, targets, dropout, four_bit)
