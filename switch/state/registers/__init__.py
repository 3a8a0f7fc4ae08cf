"""Registers."""
