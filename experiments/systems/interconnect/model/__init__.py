"""A vectorised model of queues, for networks that are too large for packets: a link sends a packet in a slot."""
