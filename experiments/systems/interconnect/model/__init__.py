"""A vectorised model of queues, for networks that are too large for packets: what a packet takes is one slot of time."""
