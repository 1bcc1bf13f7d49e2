"""Runs one step of a model on tensors without data, and writes down what it allocates, computes and frees."""
