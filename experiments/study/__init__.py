"""Experiments as YAML files: what is varied, what runs, what is kept, and how an interrupted run goes on."""
