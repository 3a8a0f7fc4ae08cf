"""The C text of the parts of a program."""
