"""A worker's side of a round with the parameter server."""
