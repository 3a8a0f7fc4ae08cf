"""A network that runs, on either clock."""
