"""The survey of memory: scripts/measure-memory."""
