"""The parts of scripts/measure-time. They need Python and PyTorch and nothing else; docs/measuring-time.md describes them."""
