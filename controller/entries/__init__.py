"""Files of entries for users' own programs, made into plans."""
