"""What a packet is: tables of fields, and the words and numbers that controller, hosts and experiments share."""
