"""People's own programs."""
