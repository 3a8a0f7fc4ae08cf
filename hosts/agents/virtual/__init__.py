"""Agents as greenlets on the virtual clock."""
