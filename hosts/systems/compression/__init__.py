"""Agents of gradient compression: workers, server."""
