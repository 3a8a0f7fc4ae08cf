"""Windows and senders of hosts once more, in Python, which tests compare with those in C."""
