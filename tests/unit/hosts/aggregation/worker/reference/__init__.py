"""The sender in Python, to compare the one in C with."""
