"""The server itself: RPCs, sessions, who is primary, one device."""
