"""What a program does to packets, for people: traces of single packets, and what a workload has reached."""
