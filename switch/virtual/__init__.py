"""A fabric on the virtual clock: the data plane, its hosts' interfaces and P4Runtime in one process, without root."""

from gradbed.switch.virtual.fabric import Message, Stop, VirtualFabric
from gradbed.switch.virtual.ports import Generator, HostInterface, SinkStatistics

__all__ = ["Generator", "HostInterface", "Message", "SinkStatistics", "Stop", "VirtualFabric"]
