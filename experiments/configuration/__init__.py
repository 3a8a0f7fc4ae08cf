"""Configuration that all systems share, in nominal units: links, topology, clock, times and faults."""
