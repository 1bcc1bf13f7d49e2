"""A training script of a small language model that makes its batches itself, without a DataLoader.

    stoker predict examples/scripts/language.py --gpu a100-40gb --batch 64 -- --compile
"""

import argparse
import math

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--length", type=int, default=256)
parser.add_argument("--accumulate", type=int, default=4)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--compile", action="store_true")
args = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
text = torch.randint(0, 8192, (1_000_000,))


class Model(nn.Module):
    def __init__(self, width: int = 384, layers: int = 6):
        super().__init__()
        self.words, self.places = nn.Embedding(8192, width), nn.Embedding(args.length, width)
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 8192, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words, following):
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1], device=words.device)
        scores = self.head(self.blocks(x, mask=mask, is_causal=True))
        return nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())


def batch():
    starts = torch.randint(len(text) - args.length - 1, (args.batch_size,))
    words = torch.stack([text[i:i + args.length + 1] for i in starts])
    return words[:, :-1].to(device), words[:, 1:].to(device)


model = Model().to(device)
if args.compile:
    model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=device == "cuda")
scaler = torch.amp.GradScaler(device, enabled=dtype is torch.float16)
for step in range(args.steps):
    optimizer.param_groups[0]["lr"] = 3e-4 * 0.5 * (1 + math.cos(math.pi * step / args.steps))
    for _ in range(args.accumulate):
        with torch.autocast(device, dtype=dtype):
            loss = model(*batch()) / args.accumulate
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item() * args.accumulate:.3f}")
