"""What touches PyTorch and text in choosing settings: learning-rate range test, gradient noise, batches, vocabularies, lengths."""

from __future__ import annotations
