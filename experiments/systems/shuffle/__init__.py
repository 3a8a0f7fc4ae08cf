"""Experiments with coded shuffles between the epochs of a training."""
