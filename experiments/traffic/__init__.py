"""Who sends to whom how much, as agents of hosts/traffic; and what they found."""
