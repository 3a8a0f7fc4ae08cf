"""Where and in which order points run."""
