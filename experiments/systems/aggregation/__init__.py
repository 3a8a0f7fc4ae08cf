"""Trials of in-network aggregation."""
