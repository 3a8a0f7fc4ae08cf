"""Clients that bring switches to a plan and read their counters."""

import os

# gRPC's core writes log lines of its own to standard error, as when a switch goes away, which is no news here.
# It reads this variable once, when it is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
