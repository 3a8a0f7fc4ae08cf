"""The controller's part of each system."""
