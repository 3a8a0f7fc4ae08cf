"""Where and in which order trials run."""
