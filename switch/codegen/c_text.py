"""Pieces of C text."""

from __future__ import annotations


def quoted(text: str) -> str:
    """A C string literal."""
    parts = []
    for byte in text.encode("utf-8", "replace"):
        char = chr(byte)
        parts.append(char if char.isascii() and char.isprintable() and char not in '"\\?' else f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'
