"""A NIC with queue pairs on an interface of the kernel, for one agent that is a process."""

from __future__ import annotations

from typing import Any

from gradbed.common.resources import Closing
from gradbed.switch.engine import Engine
from gradbed.switch.engine.queue_pairs import HostQueuePairs
from gradbed.switch.engine.statistics import Patterns
from gradbed.topo.link import LinkModel

_DEVICE, _PORT = 1, 0
_PATIENCE_S = 5.0
_MANY_PACKETS = 2**31
"""A NIC queues whatever its agent's streams offer it."""


class KernelNic(Closing):
    """The engine's NIC, whose thread carries messages while the agent computes or waits; an OpenNic of
    gradbed.hosts.agents.kernel.nic."""

    def __init__(self, interface: str, rate_bps: int | None, classes: Patterns = ()) -> None:
        """Open an interface of this network namespace. Raises UserError where it or the right to open it is missing.

        `rate_bps`: at which it sends; None: as fast as it can. `classes`: of packets, by which it counts.
        """
        self._engine = Engine()
        try:
            self._engine.add_switch(_DEVICE, interface, cpu_port=None)
            self._descriptor = self._engine.add_nic(
                _DEVICE, _PORT, interface, LinkModel(rate_bps=rate_bps, queue_packets=_MANY_PACKETS)
            )
            if classes:
                self._engine.count_classes(classes)
            self._engine.start()
        except BaseException:
            self._engine.close()
            raise

    def fileno(self) -> int:
        """Return an eventfd that is readable when a queue pair has something new."""
        return self._descriptor

    def open_queue_pairs(self) -> HostQueuePairs:
        return HostQueuePairs(self._engine, _DEVICE, _PORT)

    def carried(self) -> dict[str, Any]:
        """Return counts of what left by the interface.

        sent_frames, sent_bytes and sent_classes (by class, [0] without one); drops: frames that had no room in the
        buffer of the NIC's socket.
        """
        sent = next(row for row in self._engine.link_statistics() if row.direction == "in")
        classes = [row.delivered for row in self._engine.link_classes() if row.direction == "in"]
        return {
            "sent_frames": sent.packets,
            "sent_bytes": sent.bytes,
            "sent_classes": classes[0] if classes else (),
            "drops": sum(row.socket_drops for row in self._engine.interface_statistics()),
        }

    def come_to_rest(self) -> None:
        """Let what is on its way to the interface leave, once its queue pairs are closed."""
        self._engine.quiesce(_PATIENCE_S)

    def close(self) -> None:
        """Close the NIC, after its queue pairs. May be repeated."""
        self._engine.close()
