"""Simulated networks: data plane, hosts' interfaces and P4Runtime on the virtual clock, in one process."""

from gradbed.switch.virtual.network import Message, SimulatedNetwork, Stop
from gradbed.switch.virtual.ports import Generator, HostInterface, SinkStatistics

__all__ = ["Generator", "HostInterface", "Message", "SimulatedNetwork", "SinkStatistics", "Stop"]
