"""Who sends which coded packet to whom: pure functions from storage, demand and trees to a schedule."""
