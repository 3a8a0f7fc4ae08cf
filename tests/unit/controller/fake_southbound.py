"""A southbound client without switches: it remembers what it is told."""

from __future__ import annotations

from controller.planning.plan import Plan
from controller.southbound.interface import CounterCell, SouthboundError, SwitchStatus


class FakeSouthbound:
    """Implements controller.southbound.interface.Southbound. `failure` is what every call then raises."""

    def __init__(self, switches: list[str]) -> None:
        self.switches = switches
        self.applied: list[Plan] = []
        self.cells: dict[str, list[CounterCell]] = {}
        self.failure: SouthboundError | None = None

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

    def stop(self) -> None:
        pass
