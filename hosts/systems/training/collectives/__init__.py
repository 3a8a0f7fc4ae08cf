"""Collective algorithms as schedules of sends and receives, and what they cost. Pure: no network."""
