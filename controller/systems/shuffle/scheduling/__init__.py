"""Schedules of coded packets: pure functions from storage, demand and trees to a schedule."""
