"""What messages name of a program: match keys, calls of actions, packet-ins and packet-outs."""
