"""A study as its file has it, checked."""
