"""What a GPU's memory and time are measured by for the project's own tables: cases in order, most valuable first.

scripts/measure-memory and scripts/measure-time run them; docs tell what they write. They need PyTorch and nothing else.
"""
