"""Graphs of known shapes, one a file; topo/registry.py finds them by word."""
