"""The programs of p4lang where they are installed: p4c, BMv2, its command line, p4runtime-shell."""
