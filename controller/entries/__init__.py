"""What people want switches to hold, as they write it: files of entries for their own programs, made into plans."""
