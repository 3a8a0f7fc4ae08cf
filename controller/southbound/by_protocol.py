"""P4 switches and OpenFlow switches of one network behind one interface."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.interface import CounterCell, Southbound, SouthboundListener, SwitchStatus
from gradbed.controller.southbound.openflow.openflow import OpenFlowSouthbound


class SouthboundByProtocol:
    """Implements gradbed.controller.southbound.interface.Southbound; `openflow_switches` are those of the OpenFlow
    part."""

    def __init__(self, p4: Southbound, openflow: OpenFlowSouthbound, openflow_switches: Collection[str]) -> None:
        self._p4 = p4
        self._openflow = openflow
        self._openflow_switches = frozenset(openflow_switches)
        self._plan = Plan(switches={})

    def listen(self, listener: SouthboundListener) -> None:
        self._p4.listen(listener)
        self._openflow.listen(listener)

    def start(self, plan: Plan) -> None:
        self._plan = plan
        self._openflow.start(self._part(plan, openflow=True))
        self._p4.start(self._part(plan, openflow=False))

    def wait_ready(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        self._p4.wait_ready(timeout_s)
        self._openflow.wait_ready(max(0.0, deadline - time.monotonic()))

    def apply(self, plan: Plan) -> None:
        self._openflow.apply(self._part(plan, openflow=True))
        try:
            self._p4.apply(self._part(plan, openflow=False))
        except Exception:
            # The P4 part has gone back by itself.
            self._openflow.restore(self._part(self._plan, openflow=True))
            raise
        self._plan = plan

    def status(self) -> list[SwitchStatus]:
        """In the plan's order."""
        found = {status.name: status for status in (*self._p4.status(), *self._openflow.status())}
        return [found[name] for name in self._plan.switches if name in found]

    def counters(self, switch: str) -> dict[str, list[CounterCell]]:
        return self._of(switch).counters(switch)

    def differences(self, switch: str) -> Sequence[str] | None:
        return self._of(switch).differences(switch)

    def registers(self, switch: str, name: str) -> Sequence[int | None]:
        return self._of(switch).registers(switch, name)

    def hand_over(self) -> None:
        self._p4.hand_over()
        self._openflow.hand_over()

    def stop(self) -> None:
        self._openflow.stop()
        self._p4.stop()

    def _of(self, switch: str) -> Southbound:
        return self._openflow if switch in self._openflow_switches else self._p4

    def _part(self, plan: Plan, openflow: bool) -> Plan:
        return Plan(
            switches={
                name: switch
                for name, switch in plan.switches.items()
                if (name in self._openflow_switches) == openflow
            }
        )
