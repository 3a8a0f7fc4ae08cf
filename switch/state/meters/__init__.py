"""Meters."""
