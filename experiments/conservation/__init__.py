"""Conservation checks: do the counts of hosts, links and switches agree?"""
