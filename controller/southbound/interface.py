"""The interface between the controller and its switches, for any protocol: plans, reads, status and messages."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan, SwitchPlan

# ---- Where a switch is reached ----


@dataclass(frozen=True)
class Target:
    """The address of a switch."""

    address: str
    """gRPC address ("127.0.0.1:9559", "unix:/run/p4rt.sock")."""
    device_id: int
    """The switch's P4Runtime device id at that address."""
    thrift_port: int | None = None
    """Thrift port of a BMv2 switch, whose P4Runtime server does not read registers."""


# ---- Messages of P4 switches ----


@dataclass(frozen=True)
class Digest:
    """A digest list: messages of one digest (P4Runtime specification, "Digest Messages")."""

    name: str
    """Name of the digest in P4Info, which is that of its struct ("learn_t")."""
    entries: tuple[Mapping[str, int], ...]
    """Fields of each message by name; those of a tuple are named "0", "1" and so on."""


@dataclass(frozen=True)
class PacketIn:
    """A packet that a switch sent to the controller."""

    payload: bytes
    metadata: Mapping[str, int]
    """Fields of the program's header @controller_header("packet_in") by name."""


Message = Digest | PacketIn


# ---- The southbound ----


class SouthboundError(Exception):
    """Raised when a switch does not carry out a request; one line that names the switch."""


class SouthboundTimeout(SouthboundError):
    """Raised when a connected switch does not answer in time."""


@dataclass(frozen=True)
class SwitchStatus:
    """The status of a switch."""

    name: str
    connected: bool
    """Whether the switch has its pipeline and its part of the plan."""
    pipeline: str | None = None
    """The pipeline that runs ("aggregation 1f0c..."); None if none, or an unknown one."""
    error: str = ""
    """Why the switch is not connected; empty if it is."""


@dataclass(slots=True)
class CounterCell:
    """A cell of a counter array. It is not frozen, since creating frozen ones takes longer than reading them."""

    index: int
    packets: int
    bytes: int


class SouthboundListener(Protocol):
    """Callbacks of a southbound.

    They are called from any thread, and must not call the southbound, unless that has no threads of its own.
    """

    def switch_changed(self, status: SwitchStatus) -> None:
        """Called when a switch has connected or disconnected."""

    def message(self, switch: str, message: Message) -> None:
        """Called when a P4 switch has sent a digest or a packet."""


class NoListener:
    """A listener that ignores all events."""

    def switch_changed(self, status: SwitchStatus) -> None: ...

    def message(self, switch: str, message: Message) -> None: ...


class Southbound(Protocol):
    """Bring all switches to a plan, and keep them there. Methods may be called from any thread."""

    def listen(self, listener: SouthboundListener) -> None:
        """Set the listener; to be called before `start`."""

    def start(self, plan: Plan) -> None:
        """Begin to connect; every switch gets its part of the plan whenever it connects."""

    def wait_ready(self, timeout_s: float) -> None:
        """Return once every switch holds its part of the plan.

        Raises:
            UserError: A switch rejects it, or does not connect in time.
        """

    def apply(self, plan: Plan) -> None:
        """Change to another plan for the same switches by writing the difference.

        Raises:
            SouthboundError: A switch is away, rejects the plan, or is late (SouthboundTimeout). Switches are kept at
                the previous plan then.
        """

    def status(self) -> list[SwitchStatus]: ...

    def counters(self, switch: str) -> dict[str, list[CounterCell]]:
        """Read all counter arrays of a switch and return them by their short names.

        Raises:
            SouthboundError: The switch is away or late.
        """

    def differences(self, switch: str) -> Sequence[str] | None:
        """Read a switch and return the differences from its part of the plan: a line for each change that is missing.

        Registers and meters are not read, since packets change them. None: the switch cannot report its contents (not
        every target reads groups).

        Raises:
            SouthboundError: The switch is away or late.
        """

    def registers(self, switch: str, name: str) -> Sequence[int | None]:
        """Read all cells of a register array, by any of its names; None: a value too large for BMv2 (2^63 - 1 on).

        Raises:
            UserError: There is no such array.
            SouthboundError: The switch is away.
        """

    def hand_over(self) -> None:
        """Disconnect from all switches, which keep their state: another controller is in charge from now on."""

    def stop(self) -> None: ...


# ---- Sessions: what the clients of both protocols share ----


class SwitchSession:
    """Keep one switch at its plan.

    `refused` is set while the switch is connected but rejects what it is sent: the session tries again, but no caller
    should wait for it.
    """

    def __init__(
        self, name: str, address: str, on_change: Callable[[SwitchStatus], None], wanted: SwitchPlan
    ) -> None:
        self.name = name
        self.refused = False
        self.status = SwitchStatus(name, False, error=f"no answer from {address}")
        self._on_change = on_change
        self._wanted = wanted

    @property
    def plan(self) -> SwitchPlan:
        """The plan that the switch is kept to."""
        return self._wanted

    def _require_connected(self) -> None:
        if not self.status.connected:
            raise SouthboundError(f"{self.name} is not connected: {self.status.error}")

    def _set_status(self, status: SwitchStatus) -> None:
        changed = status != self.status
        self.status = status
        if changed:
            self._on_change(status)


AnySession = TypeVar("AnySession", bound=SwitchSession)


class SessionsSouthbound(Generic[AnySession]):
    """The methods of `Southbound` that only need the status of the sessions.

    Args:
        targets: The target of each switch.
    """

    def __init__(self, targets: Mapping[str, Target]) -> None:
        self._targets = dict(targets)
        self._sessions: dict[str, AnySession] = {}
        self._listener: SouthboundListener = NoListener()
        self._changed = threading.Condition()

    def listen(self, listener: SouthboundListener) -> None:
        self._listener = listener

    def wait_ready(self, timeout_s: float) -> None:
        def refused() -> list[SwitchStatus]:
            return [s.status for s in self._sessions.values() if s.refused and not s.status.connected]

        def settled() -> bool:
            return bool(refused()) or all(status.connected for status in self.status())

        with self._changed:
            self._changed.wait_for(settled, timeout_s)
        waiting = refused() or [status for status in self.status() if not status.connected]
        if waiting:
            others = f" (and {len(waiting) - 1} other switches)" if len(waiting) > 1 else ""
            raise UserError(f"switch {waiting[0].name}{others} is not ready: {waiting[0].error}")

    def status(self) -> list[SwitchStatus]:
        return [session.status for session in self._sessions.values()]

    def _check_switches(self, plan: Plan) -> None:
        missing = sorted(set(plan.switches) ^ set(self._targets))
        if missing:
            raise UserError(f"plan and targets name different switches: {', '.join(missing)}")

    def _status_changed(self, status: SwitchStatus) -> None:
        with self._changed:
            self._changed.notify_all()
        self._listener.switch_changed(status)


# ---- A listener with a thread of its own ----

_logger = logging.getLogger(__name__)


class QueuedListener:
    """A `SouthboundListener` that queues events and passes them on, in order, from a thread of its own.

    For listeners that call the southbound: its own threads must not wait for them.
    """

    def __init__(self, listener: SouthboundListener) -> None:
        self._listener = listener
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._deliver, name="southbound-events", daemon=True)
        self._thread.start()

    def switch_changed(self, status: SwitchStatus) -> None:
        self._waiting.put(lambda: self._listener.switch_changed(status))

    def message(self, switch: str, message: Message) -> None:
        self._waiting.put(lambda: self._listener.message(switch, message))

    def stop(self) -> None:
        """Return once all events so far have been delivered."""
        self._waiting.put(None)
        self._thread.join()

    def _deliver(self) -> None:
        while (deliver := self._waiting.get()) is not None:
            try:
                deliver()
            except Exception:
                # No caller to raise to, and the next events must be delivered.
                _logger.exception("an event of a switch could not be handled")
