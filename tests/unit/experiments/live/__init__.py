"""The live view without a browser."""
