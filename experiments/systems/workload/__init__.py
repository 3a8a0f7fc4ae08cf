"""Trials of a user's own P4 program under traffic."""
