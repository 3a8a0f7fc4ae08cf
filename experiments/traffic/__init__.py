"""Traffic between hosts: patterns and rates, the agents of hosts/traffic, and their results."""
