"""The limit: a forwarder in C without P4. `python -m experiments.bench.switch.bare_forwarder LEFT RIGHT`."""

from __future__ import annotations

import sys

from experiments.bench.switch.packet_io import forward_for_ever
from switch.parent_death import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    forward_for_ever(sys.argv[1], sys.argv[2])
