"""C of a program's parts."""
