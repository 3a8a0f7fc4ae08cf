"""What a network is: graphs of hosts, switches and links, and how they come up on Mininet."""
