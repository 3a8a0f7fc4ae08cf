"""Rows and numbers, for files and for people."""
