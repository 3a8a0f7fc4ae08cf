"""P4Runtime messages: values, keys and calls between them and plain numbers; whose they are (roles)."""
