"""Random faults in every system: no run may end wrong."""
