"""Counters that programs index."""
