"""The survey of time: scripts/measure-time. Single operators and the host by calibrate's means, whole steps besides."""
