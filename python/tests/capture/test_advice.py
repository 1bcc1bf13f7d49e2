"""What is advised where a step does not fit: what costs least first, more GPUs last. Llama-7B with LoRA on 24 GB, in fp32."""

import json
import subprocess
import sys

from stoker_binary import STOKER

LLAMA = '''
import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, INNER, VOCABULARY, RANK = 4096, 32, 11008, 32000, 8


class Adapted(nn.Module):
    """A frozen projection with LoRA's two small ones beside it."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH, bias=False)
        self.down, self.up = nn.Linear(WIDTH, RANK, bias=False), nn.Linear(RANK, WIDTH, bias=False)

    def forward(self, x):
        return self.base(x) + 2.0 * self.up(self.down(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query, self.value = Adapted(), Adapted()
        self.key, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.wide = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(WIDTH, INNER, bias=False)
        self.narrow = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        h = self.before(x)
        batch, length, _ = h.shape
        query, key, value = (f(h).view(batch, length, HEADS, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        h = self.after(x)
        return x + self.narrow(functional.silu(self.gate(h)) * self.wide(h))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(32)))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_("query.down" in name or "query.up" in name or "value.down" in name or "value.up" in name)

    def forward(self, ids):
        scores = self.head(self.norm(self.blocks(self.tokens(ids))))
        return functional.cross_entropy(scores[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())


def model():
    return Llama(), (torch.randint(0, VOCABULARY, (2, 512)),)
'''


def test_a_7b_lora_on_24_gb_is_told_bf16_first_and_more_gpus_last(on_cuda, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_PYTHON", sys.executable)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "llama.py").write_text(LLAMA)

    def predict(*flags):
        return subprocess.run([STOKER, "predict", "llama.py:model", "--gpu", "rtx-3090", "--batch", "1", "--optimizer", "adamw",
                               "--host", "cores=8,ram=64G", *flags], capture_output=True, text=True)

    alone = predict("--precision", "bf16", "--json")
    assert alone.returncode == 0, alone.stderr
    memory = json.loads(alone.stdout)["memory"]
    assert memory["verdict"] == "FITS" and 13 < memory["device_peak_bytes"]["value"] / 2**30 < 18
    told = predict()
    lines = [line.strip() for line in told.stdout.splitlines()]
    assert told.returncode == 1 and any(line.startswith("DOES NOT FIT") for line in lines), told.stderr
    fits = [line for line in lines if line.startswith("Fits with")]
    assert fits[0].startswith("Fits with --precision bf16"), fits
    assert "fsdp" in fits[-1] and not any("fsdp" in line for line in fits[:-1]), fits
