"""The same over TCP, for comparison."""
