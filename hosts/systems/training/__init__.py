"""Ranks of a training job: they work through execution traces, and their collectives over queue pairs."""
