"""What an agent is told and has of the world; the rooms run it on the kernel's network or on the virtual clock."""
