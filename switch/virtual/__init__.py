"""A fabric on the virtual clock: the data plane, its hosts' interfaces and P4Runtime in one process, without root."""

from switch.virtual.fabric import Message, Stop, VirtualFabric
from switch.virtual.interface import HostInterface
from switch.virtual.traffic import Generator, SinkStatistics

__all__ = ["Generator", "HostInterface", "Message", "SinkStatistics", "Stop", "VirtualFabric"]
