"""How it is asked: the command line, one small file for each command."""
