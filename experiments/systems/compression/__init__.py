"""Trials of gradient compression."""
