"""Do the counts of hosts, links and switches agree?"""
