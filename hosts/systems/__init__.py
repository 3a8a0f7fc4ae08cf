"""The agents of each system."""
