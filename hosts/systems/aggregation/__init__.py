"""Agents of in-network aggregation: workers, server, ring."""
