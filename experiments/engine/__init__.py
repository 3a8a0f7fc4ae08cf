"""Runs a trial of any system: its phases, the faults in them, samples, and the wait until the network is at rest."""
