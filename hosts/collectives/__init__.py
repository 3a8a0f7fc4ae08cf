"""Collectives that hosts carry out packet by packet."""
