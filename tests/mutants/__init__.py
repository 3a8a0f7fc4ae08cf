"""Deliberate mistakes that tests have to notice: NAME.yaml lists them, `python -m tests.mutants` tries them."""
