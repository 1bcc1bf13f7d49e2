"""Low-rank adapters (LoRA) on a model whose own weights are frozen, and held in four bits where that is asked (QLoRA).

The layers are those of peft and bitsandbytes in what they allocate and compute: Hu et al., "LoRA: Low-Rank Adaptation of Large
Language Models", 2021; Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs", 2023. Neither library is needed.
"""

from .apply import applied
from .wish import Adapters, parse

__all__ = ["Adapters", "applied", "parse"]
