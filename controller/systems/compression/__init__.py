"""Plan parameter servers of compressed gradients."""
