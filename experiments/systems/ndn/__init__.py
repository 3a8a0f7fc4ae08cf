"""Trials of gradients over NDN."""
