"""What a program did to one packet."""
