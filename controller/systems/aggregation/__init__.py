"""Plan in-network aggregation: placement, trees, table entries."""
