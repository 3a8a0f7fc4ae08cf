"""Plan the networks of training traces and collectives."""
