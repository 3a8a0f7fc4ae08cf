"""The southbound of a configuration: P4Runtime, and OpenFlow where there are OpenFlow switches."""

from __future__ import annotations

from collections.abc import Mapping

from gradbed.controller.config import ControllerConfig
from gradbed.controller.core.term import Term
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.controller.southbound.by_protocol import SouthboundByProtocol
from gradbed.controller.southbound.interface import Southbound
from gradbed.controller.southbound.openflow.openflow import OpenFlowSouthbound
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from gradbed.controller.southbound.p4runtime.pipeline import Pipeline
from gradbed.controller.southbound.p4runtime.session import time_as_bid


def load_pipelines(config: ControllerConfig) -> dict[str, Pipeline]:
    """The programs of the configuration; UserError if one cannot be read."""
    return {
        name: Pipeline.load(name, files.json_, files.p4info, files.routed) for name, files in config.programs.items()
    }


def unrouted_programs(pipelines: Mapping[str, Pipeline]) -> frozenset[str]:
    """Those without a table for the controller's IPv4 routes, and those that want none."""
    return frozenset(name for name, each in pipelines.items() if not (each.routed and each.schema.routes_ipv4))


def has_openflow(config: ControllerConfig) -> bool:
    return bool(_openflow_switches(config))


def openflow_southbound(config: ControllerConfig, term: Term | None) -> OpenFlowSouthbound | None:
    """For the OpenFlow switches; None if there are none, and then none of os-ken's OpenFlow is loaded."""
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
    """For all switches.

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
