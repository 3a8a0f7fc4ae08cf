"""Who sends and learns: packet formats, transport, training and the agents that run inside the hosts."""
