"""Parser value sets."""
