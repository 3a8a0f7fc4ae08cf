"""gradbed p4: everything about P4 programs."""
