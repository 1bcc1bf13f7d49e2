"""The parts of scripts/measure-memory. They need Python and PyTorch and nothing else; docs/guide/measuring-gpus.md describes them."""
