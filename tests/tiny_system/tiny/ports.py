"""What controller and agents of the system both know."""

UDP_PORT = 7000
