"""What the clients of both protocols share: a session for each switch, which keeps it at its plan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.controller.southbound.interface import (
    NoListener,
    SouthboundError,
    SouthboundListener,
    SwitchStatus,
    Target,
)


class SwitchSession:
    """One switch. `refused` is set while it is there but does not accept what it is sent: trying again will not help
    a person who waits, though the session does."""

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
    """Those methods of gradbed.controller.southbound.interface.Southbound that only ask how the sessions are.

    targets: where each switch is.
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
