"""Externs of this project's own (switch/state/externs), as P4Runtime has them."""
