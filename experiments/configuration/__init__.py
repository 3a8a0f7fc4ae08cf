"""What a trial can be given, in nominal units: links, topology, clock, times and faults."""
