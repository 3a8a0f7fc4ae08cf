"""A system outside gradbed's tree: hosts send to each other at constant rates. All that a system has to be."""
