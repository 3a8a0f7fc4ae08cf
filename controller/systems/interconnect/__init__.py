"""Plan optical-electrical networks: light paths and routes."""
