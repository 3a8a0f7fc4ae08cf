"""Digests."""
