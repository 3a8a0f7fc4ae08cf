"""Schedules made cluster by cluster."""
