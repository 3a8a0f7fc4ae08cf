"""gradbed p4: everything about P4 programs, one small file for each command."""
