"""What authors of plug-ins import, to make systems, topologies and compressors in packages of their own.

A package names its plug-ins by entry points, of the groups gradbed.systems, gradbed.topologies and
gradbed.compressors (docs/plugins.md). What is importable elsewhere in gradbed is private, and may change any day.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

_MODULES = {
    "gradbed.common.errors": "UserError",
    "gradbed.controller.core.service": "NoSettings Service",
    "gradbed.controller.planning.plan": "Plan SwitchPlan TableEntry",
    "gradbed.experiments.accounts.accounting": "HostAccount Tally disagreements rows",
    "gradbed.experiments.accounts.conservation": "host_accounts",
    "gradbed.experiments.configuration.point": "PointConfiguration",
    "gradbed.experiments.configuration.sections": "Section option",
    "gradbed.experiments.phases": "Measured Phase Point PointResult Progress",
    "gradbed.experiments.programs": "FORWARD Program",
    "gradbed.experiments.setup": "NetworkSetup PointTask",
    "gradbed.experiments.system": "System",
    "gradbed.experiments.tables.metric": "Metric",
    "gradbed.experiments.testbeds.agents": "AgentSpec",
    "gradbed.formats.addresses": "ip_integer",
    "gradbed.formats.header": "Field Header",
    "gradbed.hosts.agents.context": "AgentContext",
    "gradbed.hosts.agents.description": "AgentAddress Description",
    "gradbed.hosts.compressors.content": "Content",
    "gradbed.hosts.compressors.methods": "Compressor Setting",
    "gradbed.hosts.protocols.frames": "frame_type mac_array pack_datagrams well_formed_datagrams",
    "gradbed.topo.addressing": "make_host make_switch",
    "gradbed.topo.graph": "Endpoint Host Link Switch Topology",
    "gradbed.topo.link": "LinkModel UNLIMITED",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [*sorted(_PLACES)]


def __getattr__(name: str) -> Any:
    """Load what a name needs when it is first used: an agent takes nothing of the controller."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = found
    return found
