"""The limit: a forwarder in C without P4. `python -m tools.bench.switch.bare_forwarder LEFT RIGHT`."""

from __future__ import annotations

import sys

from gradbed.common.signals import die_with_parent
from tools.bench.switch.packet_io import forward_for_ever

if __name__ == "__main__":
    die_with_parent()
    forward_for_ever(sys.argv[1], sys.argv[2])
