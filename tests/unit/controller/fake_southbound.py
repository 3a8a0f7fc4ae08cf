"""A southbound client without switches: it remembers what it is told."""

from __future__ import annotations

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.interface import (
    CounterCell,
    Message,
    NoListener,
    SouthboundError,
    SouthboundListener,
    SwitchStatus,
)


class News:
    """Implements gradbed.controller.southbound.interface.SouthboundListener: it remembers what it is told."""

    def __init__(self) -> None:
        self.statuses: list[SwitchStatus] = []
        self.messages: list[tuple[str, Message]] = []

    def switch_changed(self, status: SwitchStatus) -> None:
        self.statuses.append(status)

    def message(self, switch: str, message: Message) -> None:
        self.messages.append((switch, message))


class FakeSouthbound:
    """Implements gradbed.controller.southbound.interface.Southbound. `failure` is what every call then raises."""

    def __init__(self, switches: list[str]) -> None:
        self.switches = switches
        self.applied: list[Plan] = []
        self.cells: dict[str, list[CounterCell]] = {}
        self.different: list[str] | None = []
        self.register_cells: dict[str, list[int | None]] = {}
        self.failure: SouthboundError | None = None
        self.listener: SouthboundListener = NoListener()

    def listen(self, listener: SouthboundListener) -> None:
        self.listener = listener

    def start(self, plan: Plan) -> None:
        self.applied.append(plan)

    def wait_ready(self, timeout_s: float) -> None:
        pass

    def apply(self, plan: Plan) -> None:
        if self.failure is not None:
            raise self.failure
        self.applied.append(plan)

    def status(self) -> list[SwitchStatus]:
        last = len(self.switches) - 1
        return [
            SwitchStatus(name, True, "aggregation 1")
            if index < last
            else SwitchStatus(name, False, None, "no answer")
            for index, name in enumerate(self.switches)
        ]

    def counters(self, switch: str) -> dict[str, list[CounterCell]]:
        if self.failure is not None:
            raise self.failure
        return self.cells

    def differences(self, switch: str) -> list[str] | None:
        if self.failure is not None:
            raise self.failure
        return self.different

    def registers(self, switch: str, name: str) -> list[int | None]:
        if self.failure is not None:
            raise self.failure
        if name not in self.register_cells:
            raise UserError(f"{switch} has no register {name!r}")
        return self.register_cells[name]

    def hand_over(self) -> None: ...

    def stop(self) -> None:
        pass
