"""Agents of NDN: producers and consumers of gradients."""
