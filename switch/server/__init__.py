"""The P4Runtime server: what controllers see of the switches.

From the outside in: server (thread, addresses), service (the RPCs and sessions), target (one device: its
controllers, its pipelines, one request at a time). What can be written and read is gradbed.switch.state's. The
specification is P4Runtime 1.4; its sections are cited where they are followed.
"""

from gradbed.switch.server.arbitration import Bmv2Election, Election
from gradbed.switch.server.server import P4RuntimeServer

__all__ = ["Bmv2Election", "Election", "P4RuntimeServer"]
