"""What touches PyTorch and text in choosing settings: learning-rate range test, gradient noise, batches, vocabularies, lengths."""

from __future__ import annotations

from .batch_rules import ScaledBatch, scale_batch
from .bridges import Gate, hf_search_space, lightning_batch, optuna_gate, optuna_pruner, ray_stopper
from .noise_scale import NoisePoint, NoiseScale, noise_scale
from .range_test import LrRamp, lr_ramp, lr_range_test

__all__ = ["Gate", "LrRamp", "NoisePoint", "NoiseScale", "ScaledBatch", "hf_search_space", "lightning_batch", "lr_ramp", "lr_range_test",
           "noise_scale", "optuna_gate", "optuna_pruner", "ray_stopper", "scale_batch"]
