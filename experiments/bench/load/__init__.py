"""What a network holds of the machine: counted once, over hours, and when it has gone."""
