"""Trials of optical-electrical networks."""
