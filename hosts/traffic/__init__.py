"""Traffic between hosts: when which packets are sent, and what of them arrives."""
