"""Packet hops per processor second on the virtual clock, compared with ns-3 and htsim where they are installed."""
