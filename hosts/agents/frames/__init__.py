"""What agents' interfaces look at in every frame, and count."""
