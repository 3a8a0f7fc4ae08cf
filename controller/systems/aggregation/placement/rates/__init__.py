"""Rates of jobs under a placement: the problem, its linear program, what is realised of it."""
