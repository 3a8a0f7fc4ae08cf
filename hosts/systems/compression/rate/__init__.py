"""How fast a worker sends, and what it keeps."""
