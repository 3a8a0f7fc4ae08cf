"""Table entries and what is attached to them."""
