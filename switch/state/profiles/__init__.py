"""Members and groups of action profiles."""
