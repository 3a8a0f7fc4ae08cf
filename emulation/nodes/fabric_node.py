"""A switch of the fabric process, as a Mininet node."""

from __future__ import annotations

from gradbed.emulation.nodes.quiet_switch import QuietSwitch


class FabricSwitch(QuietSwitch):
    """One device among the many of the fabric process, which is not Mininet's to start or stop."""
