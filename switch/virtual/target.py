"""P4Runtime for one device without a server: the same pipelines, entities, packet-ins and digests, on its clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from finsy.proto import p4r

from gradbed.switch.device import Program
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import raise_failures
from gradbed.switch.state.device import Device
from gradbed.switch.state.pipeline import Pipelines
from gradbed.switch.state.running_device import RunningDevice

_EVERYTHING = Role("")


class LocalTarget(RunningDevice):
    """A device with one controller, which has all rights. Methods raise RequestError or BatchError.

    `send` takes what a server would send on the controller's stream: p4.v1.StreamMessageResponse. `wait` is called
    when `next_ns` may be earlier than before.
    """

    def __init__(
        self, device: Device, pipelines: Pipelines, send: Callable[[Any], None], wait: Callable[[], None]
    ) -> None:
        super().__init__(device, self._send_digests, device.clock_ns, device.clock_ns)
        self._pipelines = pipelines
        self._send = send
        self._wait = wait
        self.cookie: int | None = None
        """Of the config that runs; None before the first."""

    @property
    def program(self) -> Program | None:
        """The running program; None before the first pipeline."""
        return None if self.state is None else self.state.pipeline.program

    def set_pipeline(self, config: Any) -> None:
        """Run the pipeline of a ForwardingPipelineConfig from now on, with fresh state (VERIFY_AND_COMMIT)."""
        self.run(self._pipelines.get(config).result(), self._digest)
        self.device.on_packet_in(self._packet_in)
        self.cookie = config.cookie.cookie

    def write(self, updates: Iterable[Any]) -> None:
        """Attempt every p4.v1.Update, in order. Raises BatchError if some fail."""
        outcomes = self.running().write(updates, _EVERYTHING)
        self._wait()
        raise_failures(outcomes, "updates")

    def read(self, entities: Iterable[Any]) -> list[Any]:
        """Return the entities that each p4.v1.Entity asks for, as in a ReadRequest."""
        state = self.running()
        return [found for entity in entities for found in state.read(entity, _EVERYTHING)]

    def restart(self) -> None:
        """Lose program, tables, registers and all messages that were to be sent."""
        self.device.on_packet_in(None)
        self.cookie = None
        self.lose_everything()

    # ---- Timers ----

    @property
    def next_ns(self) -> int | None:
        """The time on the device's clock at which `send_due` has something to do: an incomplete digest list, an
        idle entry."""
        if self.state is None or self.digests is None:
            return None
        times = (self.digests.due_ns, self.state.tables.idle_timers.next_ns)
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def send_due(self) -> None:
        """Send digest lists and idle timeouts whose time has come."""
        if self.state is None or self.digests is None:
            return
        self.digests.send_due()
        expired = self.state.tables.expired()
        if expired:
            timestamp_ns = self.device.clock_ns()
            notification = p4r.IdleTimeoutNotification(table_entry=expired, timestamp=timestamp_ns)
            self._send(p4r.StreamMessageResponse(idle_timeout_notification=notification))

    # ---- From the data plane ----

    def _packet_in(self, frame: bytes) -> None:
        packet = self.packet_in(frame)
        if packet is not None:
            self._send(p4r.StreamMessageResponse(packet=packet))

    def _digest(self, list_id: int, words: tuple[int, ...]) -> None:
        if self.digests is not None:
            self.digests.receive(list_id, words)
            self._wait()

    def _send_digests(self, digest_id: int, digest_list: Any) -> bool:
        self._send(p4r.StreamMessageResponse(digest=digest_list))
        return True
