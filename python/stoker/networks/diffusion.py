"""The U-Net of Stable Diffusion 1: convolutions with attention to an encoded text, told how noisy its picture is.

Rombach et al., "High-Resolution Image Synthesis with Latent Diffusion Models", 2022; the sizes are those of version 1.4 and
1.5 (859.5 million parameters).
"""

from __future__ import annotations

import math

import torch
from torch import nn

from . import parts

WIDTHS = (320, 640, 1280, 1280)
TEXT_WIDTH = 768
HEADS = 8
GROUPS = 32


class _Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, time_width: int):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, inputs, eps=1e-5), nn.GroupNorm(GROUPS, outputs, eps=1e-5)
        self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time_emb_proj = nn.Linear(time_width, outputs)
        self.nonlinearity = nn.SiLU()
        self.conv_shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x, time):
        out = self.conv1(self.nonlinearity(self.norm1(x)))
        out = out + self.time_emb_proj(self.nonlinearity(time))[:, :, None, None]
        out = self.conv2(self.nonlinearity(self.norm2(out)))
        return (x if self.conv_shortcut is None else self.conv_shortcut(x)) + out


class _Attention(nn.Module):
    def __init__(self, width: int, others: int):
        super().__init__()
        self.size = width // HEADS
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k, self.to_v = nn.Linear(others, width, bias=False), nn.Linear(others, width, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(width, width), nn.Dropout(0.0)])

    def forward(self, x, others):
        def heads(states):
            return states.view(states.shape[0], -1, HEADS, self.size).transpose(1, 2)

        out = parts.attention(heads(self.to_q(x)), heads(self.to_k(others)), heads(self.to_v(others)), causal=False, dropout=0.0)
        return self.to_out[0](out)


class _Gated(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.proj, self.out = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        value, gate = self.proj(x).chunk(2, dim=-1)
        return self.out(value * nn.functional.gelu(gate))


class _Transformer(nn.Module):
    """Attention of each place to all places and to the text, around one gated layer."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width, eps=1e-6)
        self.proj_in, self.proj_out = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn1, self.attn2 = _Attention(width, width), _Attention(width, TEXT_WIDTH)
        self.ff = _Gated(width)

    def forward(self, x, text):
        batch, width, height, _ = x.shape
        states = self.proj_in(self.norm(x)).permute(0, 2, 3, 1).reshape(batch, -1, width)
        normal = self.norm1(states)
        states = self.attn1(normal, normal) + states
        states = self.attn2(self.norm2(states), text) + states
        states = self.ff(self.norm3(states)) + states
        states = states.reshape(batch, height, -1, width).permute(0, 3, 1, 2).contiguous()
        return self.proj_out(states) + x


class _Down(nn.Module):
    def __init__(self, inputs: int, width: int, time_width: int, attends: bool, last: bool):
        super().__init__()
        self.resnets = nn.ModuleList(_Residual(inputs if i == 0 else width, width, time_width) for i in range(2))
        self.attentions = nn.ModuleList(_Transformer(width) for _ in range(2 if attends else 0))
        self.downsample = None if last else nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, x, time, text, kept):
        for i, resnet in enumerate(self.resnets):
            x = resnet(x, time)
            if self.attentions:
                x = self.attentions[i](x, text)
            kept.append(x)
        if self.downsample is not None:
            x = self.downsample(x)
            kept.append(x)
        return x


class _Up(nn.Module):
    def __init__(self, inputs: list, width: int, time_width: int, attends: bool, last: bool):
        super().__init__()
        self.resnets = nn.ModuleList(_Residual(size, width, time_width) for size in inputs)
        self.attentions = nn.ModuleList(_Transformer(width) for _ in range(3 if attends else 0))
        self.upsample = None if last else nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x, time, text, kept):
        for i, resnet in enumerate(self.resnets):
            x = resnet(torch.cat([x, kept.pop()], dim=1), time)
            if self.attentions:
                x = self.attentions[i](x, text)
        if self.upsample is not None:
            x = self.upsample(nn.functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return x


class DiffusionUNet(nn.Module):
    def __init__(self, channels: int = 4):
        super().__init__()
        first, time_width = WIDTHS[0], 4 * WIDTHS[0]
        self.conv_in = nn.Conv2d(channels, first, 3, padding=1)
        self.time_embedding = nn.Sequential(nn.Linear(first, time_width), nn.SiLU(), nn.Linear(time_width, time_width))
        kept, width, down = [first], first, []
        for i, size in enumerate(WIDTHS):
            last = i == len(WIDTHS) - 1
            down.append(_Down(width, size, time_width, attends=not last, last=last))
            kept += [size, size] + ([] if last else [size])
            width = size
        self.down_blocks = nn.ModuleList(down)
        self.mid = nn.ModuleList([_Residual(width, width, time_width), _Transformer(width), _Residual(width, width, time_width)])
        up = []
        for i, size in enumerate(reversed(WIDTHS)):
            inputs = [(width if j == 0 else size) + kept.pop() for j in range(3)]
            up.append(_Up(inputs, size, time_width, attends=i > 0, last=i == len(WIDTHS) - 1))
            width = size
        self.up_blocks = nn.ModuleList(up)
        self.conv_norm_out, self.conv_act = nn.GroupNorm(GROUPS, width, eps=1e-5), nn.SiLU()
        self.conv_out = nn.Conv2d(width, channels, 3, padding=1)

    def _time(self, timesteps, dtype):
        half = WIDTHS[0] // 2
        rates = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32, device=timesteps.device) / half)
        angles = timesteps[:, None].float() * rates[None, :]
        return self.time_embedding(torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1).to(dtype))

    def forward(self, latents, timesteps, text, noise):
        time = self._time(timesteps, latents.dtype)
        x = self.conv_in(latents)
        kept = [x]
        for block in self.down_blocks:
            x = block(x, time, text, kept)
        x = self.mid[2](self.mid[1](self.mid[0](x, time), text), time)
        for block in self.up_blocks:
            x = block(x, time, text, kept)
        guess = self.conv_out(self.conv_act(self.conv_norm_out(x)))
        return parts.Output(loss=nn.functional.mse_loss(guess.float(), noise.float()), sample=guess)
