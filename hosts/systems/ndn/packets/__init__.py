"""NDN's names and packets, and gradients in them."""
