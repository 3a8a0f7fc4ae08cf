"""BMv2 JSON, read into values."""
