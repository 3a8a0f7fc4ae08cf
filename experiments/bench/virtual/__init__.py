"""gradbed bench virtual: packet hops per processor second on the virtual clock, beside ns-3 where it is installed."""
