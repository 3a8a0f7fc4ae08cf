"""A network that a program holds in its hands: tables, registers, packets and links, a call each, on either clock."""
