"""The version of the package; imports nothing."""

VERSION = "0.1.0"
