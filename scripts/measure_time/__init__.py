"""The models of scripts/measure-time; docs/guide/measuring-gpus.md describes what is measured."""
