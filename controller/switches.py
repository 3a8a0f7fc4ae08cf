"""The southbound of a configuration: P4Runtime, and OpenFlow where there are OpenFlow switches."""

from __future__ import annotations

from controller.config import ControllerConfig
from controller.planning.entries import AGGREGATION_PROGRAM
from controller.planning.openflow_rules import FORWARD_PROGRAM
from controller.southbound.by_protocol import SouthboundByProtocol
from controller.southbound.interface import Southbound, StatusListener
from controller.southbound.openflow import OpenFlowSouthbound
from controller.southbound.p4runtime import P4RuntimeSouthbound
from controller.southbound.pipeline import Pipeline


def openflow_southbound(config: ControllerConfig) -> OpenFlowSouthbound | None:
    """For the OpenFlow switches; None if there are none, and then none of os-ken's OpenFlow is loaded."""
    names = _openflow_switches(config)
    if not names:
        return None
    from controller.southbound.openflow_app import dial

    targets = config.switch_targets()
    return OpenFlowSouthbound({name: targets[name] for name in names}, dial)


def southbound(
    config: ControllerConfig, takes_over: bool, openflow: OpenFlowSouthbound | None, on_change: StatusListener
) -> Southbound:
    """For all switches; UserError if a program cannot be loaded.

    takes_over: leave in P4 switches what is right already. openflow: what openflow_southbound gave.
    """
    pipelines = {AGGREGATION_PROGRAM: Pipeline.load(AGGREGATION_PROGRAM, config.program.json_, config.program.p4info)}
    if config.forward_program is not None:
        files = config.forward_program
        pipelines[FORWARD_PROGRAM] = Pipeline.load(FORWARD_PROGRAM, files.json_, files.p4info)
    openflow_names = _openflow_switches(config)
    targets = {name: target for name, target in config.switch_targets().items() if name not in openflow_names}
    p4 = P4RuntimeSouthbound(targets, pipelines, takes_over, on_change=on_change)
    if openflow is None:
        return p4
    openflow.listen(on_change)
    return SouthboundByProtocol(p4, openflow, openflow_names)


def _openflow_switches(config: ControllerConfig) -> frozenset[str]:
    return frozenset(name for name, kind in config.legacy.items() if kind == "openflow")
