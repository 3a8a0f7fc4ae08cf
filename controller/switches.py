"""The southbound of a configuration: P4Runtime, and OpenFlow where there are OpenFlow switches."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from gradbed.controller.config import ControllerConfig
from gradbed.controller.core.term import Term
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.interface import CounterCell, Southbound, SouthboundListener, SwitchStatus
from gradbed.controller.southbound.openflow.openflow import OpenFlowSouthbound
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound, time_as_bid
from gradbed.controller.southbound.p4runtime.schema import Pipeline

# ---- Both protocols behind one interface ----


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
        """Return the status of switches in the plan's order."""
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


# ---- From a configuration ----


def load_pipelines(config: ControllerConfig) -> dict[str, Pipeline]:
    """Load the programs of the configuration.

    Raises:
        UserError: One cannot be read.
    """
    return {
        name: Pipeline.load(name, files.json_, files.p4info, files.routed) for name, files in config.programs.items()
    }


def unrouted_programs(pipelines: Mapping[str, Pipeline]) -> frozenset[str]:
    """Return those without a table for the controller's IPv4 routes, and those that want none."""
    return frozenset(name for name, each in pipelines.items() if not (each.routed and each.schema.routes_ipv4))


def has_openflow(config: ControllerConfig) -> bool:
    return bool(_openflow_switches(config))


def openflow_southbound(config: ControllerConfig, term: Term | None) -> OpenFlowSouthbound | None:
    """Return the southbound for OpenFlow switches; None, without loading os-ken's OpenFlow, if there are none."""
    names = _openflow_switches(config)
    if not names:
        return None
    from gradbed.controller.southbound.openflow.openflow_app import dial

    targets = config.switch_targets()
    return OpenFlowSouthbound({name: targets[name] for name in names}, dial, None if term is None else term.number)


def southbound(
    config: ControllerConfig,
    pipelines: Mapping[str, Pipeline],
    takes_over: bool,
    openflow: OpenFlowSouthbound | None,
    term: Term | None,
) -> Southbound:
    """Return the southbound for all switches.

    takes_over: leave in P4 switches what is right already. openflow: what openflow_southbound gave. term: whose
    election ids are used, if the controller has one.
    """
    openflow_names = _openflow_switches(config)
    targets = {name: target for name, target in config.switch_targets().items() if name not in openflow_names}
    bid = time_as_bid if term is None else term.election_id
    # Who is to take over may bid as little as it likes.
    p4 = P4RuntimeSouthbound(targets, pipelines, takes_over, (lambda at_least: 1) if config.hand_over else bid)
    return p4 if openflow is None else SouthboundByProtocol(p4, openflow, openflow_names)


def _openflow_switches(config: ControllerConfig) -> frozenset[str]:
    return frozenset(name for name, program in config.switches.items() if program == OPENFLOW)
