"""Queue pairs of an agent that is a process: a NIC of its own on an interface of its host."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Protocol

from gradbed.formats.roce import ROCE_PORT
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.frames.counts import Patterns
from gradbed.hosts.agents.kernel.raw_socket import DROP_ALL, attach_filter
from gradbed.hosts.agents.nic_queue_pairs import AgentQueuePairs, NicQueuePairs
from gradbed.hosts.agents.queue_pairs import StreamOptions

_UDP_DESTINATION_PORT = 36
"""Its offset in frames without IPv4 options, as streams' arrivals have it."""


class QueuePairNic(Protocol):
    """A NIC of an agent's process, such as gradbed.switch.kernel_nic.KernelNic."""

    def carried(self) -> Mapping[str, Any]: ...

    def fileno(self) -> int: ...

    def open_queue_pairs(self) -> NicQueuePairs: ...

    def come_to_rest(self) -> None: ...

    def close(self) -> None: ...


OpenNic = Callable[[str, int | None, Patterns], QueuePairNic]
"""On the interface of that name, sending at a rate in bit/s, counting by classes."""


class KernelQueuePairs(AgentQueuePairs):
    """The NIC works in a thread of the agent's process."""

    def __init__(self, nic: QueuePairNic, address: AgentAddress) -> None:
        """nic: ends with its queue pairs."""
        super().__init__(nic.open_queue_pairs(), address)
        self._kernel_nic = nic
        self._last: Mapping[str, Any] | None = None
        self._held = ExitStack()
        self._hold(ROCE_PORT)

    def fileno(self) -> int:
        return self._kernel_nic.fileno()

    def look(self) -> None:
        """The agent has seen that the descriptor is readable."""
        os.read(self.fileno(), 8)

    def open_stream(self, number: int, options: StreamOptions) -> None:
        for offset, _mask, value in options.arrivals:
            if offset == _UDP_DESTINATION_PORT:
                self._hold(value)
        super().open_stream(number, options)

    def _hold(self, udp_port: int) -> None:
        """Keep the kernel from answering "port unreachable". Several agents of a host may hold a port."""
        holder = self._held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        attach_filter(holder, DROP_ALL)
        holder.bind(("0.0.0.0", udp_port))

    def carried(self) -> Mapping[str, Any]:
        return {**super().carried(), **self._kernel_nic.carried()} if self._last is None else self._last

    def close(self) -> None:
        if self._last is None:
            super().close()
            self._kernel_nic.come_to_rest()
            self._last = self.carried()
            self._kernel_nic.close()
            self._held.close()
