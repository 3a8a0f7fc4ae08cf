"""Agents of the coded shuffle: they encode, send, decode and check samples."""
