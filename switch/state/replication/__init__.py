"""Multicast groups and clone sessions."""
