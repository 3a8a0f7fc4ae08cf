"""What the controller asks of the switches, and what they tell it, whatever protocol they speak."""

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
    """A gRPC address ("127.0.0.1:9559", "unix:/run/p4rt.sock") and the switch's P4Runtime device id there.

    thrift_port: of a switch of BMv2, whose P4Runtime reads no registers.
    """

    address: str
    device_id: int
    thrift_port: int | None = None


# ---- What P4 switches tell of their own accord ----


@dataclass(frozen=True)
class Digest:
    """A list of digest messages of one kind.

    name: the digest's in P4Info, which is that of its struct ("learn_t"). entries: the fields of each message by
    name; those of a tuple are named "0", "1" and so on.
    """

    name: str
    entries: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class PacketIn:
    """A packet that a switch sent to the controller. metadata: the fields of the program's header
    @controller_header("packet_in") by name."""

    payload: bytes
    metadata: Mapping[str, int]


Message = Digest | PacketIn


# ---- The southbound ----


class SouthboundError(Exception):
    """A switch did not do what it was asked; one line that names the switch."""


class SouthboundTimeout(SouthboundError):
    """A switch is there, as far as we know, but did not answer in time."""


@dataclass(frozen=True)
class SwitchStatus:
    """connected: pipeline and plan are in place. pipeline: what runs ("aggregation 1f0c..."); None if nothing
    that we know. error: why it is not connected, "" if it is."""

    name: str
    connected: bool
    pipeline: str | None = None
    error: str = ""


@dataclass(slots=True)
class CounterCell:
    """One cell of a counter array. Not frozen: a large network has some hundred thousand, and to freeze one takes
    longer than to read it."""

    index: int
    packets: int
    bytes: int


class SouthboundListener(Protocol):
    """Learns what switches tell. Methods are called from any thread, and must not call the southbound in turn unless
    it has no threads of its own."""

    def switch_changed(self, status: SwitchStatus) -> None:
        """A switch came or went."""

    def message(self, switch: str, message: Message) -> None:
        """A P4 switch sent something of its own accord."""


class NoListener:
    """For those who do not want to know."""

    def switch_changed(self, status: SwitchStatus) -> None: ...

    def message(self, switch: str, message: Message) -> None: ...


class Southbound(Protocol):
    """Makes the switches hold a plan. Methods may be called from any thread."""

    def listen(self, listener: SouthboundListener) -> None:
        """Tell `listener` from now on; before `start`."""

    def start(self, plan: Plan) -> None:
        """Begin to connect; every switch gets its part of the plan as soon as it is there, and again whenever
        it comes back."""

    def wait_ready(self, timeout_s: float) -> None:
        """Return once every switch holds its part of the plan. UserError when a switch refuses it, or is not
        there in time."""

    def apply(self, plan: Plan) -> None:
        """Go over to another plan for the same switches, writing the difference. SouthboundError if a switch is
        away, refuses, or is late (SouthboundTimeout); the plan before then stays the one that switches are
        brought to, and nothing goes on writing the other."""

    def status(self) -> list[SwitchStatus]: ...

    def counters(self, switch: str) -> dict[str, list[CounterCell]]:
        """All counter arrays of a switch, by their short name, read now. SouthboundError if it is away or
        late."""

    def differences(self, switch: str) -> Sequence[str] | None:
        """What the switch, asked now, holds otherwise than its part of the plan: a line for each change that would
        bring it there, none if it holds all. Registers and meters are not asked for, which packets change. None: it
        cannot tell (not every target reads groups). SouthboundError if it is away or late."""

    def registers(self, switch: str, name: str) -> Sequence[int | None]:
        """All cells of one register array, by any of its names, read now; None: a number that the switch cannot tell
        (BMv2: from 2^63 - 1 on). UserError if there is no such array, SouthboundError if the switch is away."""

    def hand_over(self) -> None:
        """Let go of all switches, which keep what they hold: another controller is in charge from now on."""

    def stop(self) -> None: ...


# ---- Sessions: what the clients of both protocols share ----


class SwitchSession:
    """Keep one switch at its plan.

    `refused` is set while the switch is connected but rejects what it is sent: the session tries again, but nobody
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
