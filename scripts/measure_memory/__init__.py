"""The parts of scripts/measure-memory. They need Python and PyTorch and nothing else; docs/measuring-memory.md describes them."""
