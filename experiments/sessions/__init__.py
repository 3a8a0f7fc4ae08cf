"""Interactive sessions with a network, for programs: tables, registers, packets and links, on either clock."""
