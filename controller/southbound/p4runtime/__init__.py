"""P4Runtime, towards P4 switches."""
