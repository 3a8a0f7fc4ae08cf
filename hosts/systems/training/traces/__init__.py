"""Training traces: their forms, and ranks that execute them."""
