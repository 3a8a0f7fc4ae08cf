"""Topologies: graphs of hosts, switches and links (graph.py), and how they come up on Mininet (emulation/)."""
