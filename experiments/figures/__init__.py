"""Figures that a system brings."""
