"""The kinds of entity that Write and Read carry, one module each."""
