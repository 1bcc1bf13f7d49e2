"""The models of scripts/measure-memory; docs/guide/measuring-gpus.md describes what is measured."""
