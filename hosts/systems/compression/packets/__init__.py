"""Compressed gradients as packets: formats, assembling, sending."""
