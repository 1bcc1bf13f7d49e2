"""The parts of scripts/measure-time. They need Python and PyTorch and nothing else; docs/guide/measuring-gpus.md describes them."""
