"""Mininet's view of the switches."""
