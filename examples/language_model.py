"""A Hugging Face language model from a configuration: nothing is downloaded, and 7 billion parameters take no memory.

    stoker capture examples/language_model.py:gpt2_medium -o gpt2_medium.step.gz --precision amp-bf16
    stoker capture examples/language_model.py:llama_7b -o llama_7b.step.gz --precision amp-bf16
    stoker predict gpt2_medium.step.gz --gpu a100-40gb --batch 8 --seq-len 1024

Parameters called `batch` and `seq_len` become dimensions: the function is called with several values of each, and the
step file answers for every batch and every length up to the configuration's limit.
"""

import torch


def _inputs(batch, seq_len):
    ids = torch.zeros(batch, seq_len, dtype=torch.long)
    return {"input_ids": ids, "labels": ids.clone()}  # with labels the model computes its own loss


def gpt2_medium(batch=8, seq_len=256):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=24, n_embd=1024, n_head=16, use_cache=False)
    return GPT2LMHeadModel(config), _inputs(batch, seq_len)


def llama_7b(batch=1, seq_len=512):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(use_cache=False)), _inputs(batch, seq_len)
