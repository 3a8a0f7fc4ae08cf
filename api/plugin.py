"""The public names for plug-ins, which extend gradbed from packages of their own.

A package names its plug-ins by entry points of the groups gradbed.systems, topologies, placements, schedulers,
compressors, congestion_controls and collectives (docs/plugins.md). What is importable elsewhere in gradbed is
private, and may change any day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradbed.common.modules import lazy_names

if TYPE_CHECKING:
    from gradbed.common.congestion_control import CongestionControl
    from gradbed.common.errors import UserError
    from gradbed.controller.core.service import NoSettings, Service
    from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
    from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver
    from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
    from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, Loan, SendQueues, Timing
    from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
    from gradbed.controller.systems.shuffle.scheduling.trees import Trees
    from gradbed.experiments.configuration.sections import Section, option
    from gradbed.experiments.configuration.trial import TrialConfiguration
    from gradbed.experiments.conservation.checks import host_accounts
    from gradbed.experiments.conservation.counts import HostAccount, Tally, disagreements, rows
    from gradbed.experiments.phases import (
        AgentResults,
        NetworkCounts,
        Observations,
        Phase,
        PhaseResult,
        Progress,
        Trial,
        TrialResult,
    )
    from gradbed.experiments.programs import FORWARD, Program
    from gradbed.experiments.runtimes.agents import AgentSpec
    from gradbed.experiments.setup import NetworkSetup, TrialTask
    from gradbed.experiments.system import (
        SwitchCapabilities,
        System,
        SystemOptions,
        SystemReport,
        SystemTools,
    )
    from gradbed.experiments.tables.metric import Metric
    from gradbed.formats.addresses import ip_integer
    from gradbed.formats.header import Field, Header
    from gradbed.hosts.agents.config import AgentAddress, AgentConfig
    from gradbed.hosts.agents.context import AgentContext
    from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveCall, CollectiveStep, Operation
    from gradbed.hosts.compressors.content import Content
    from gradbed.hosts.compressors.methods import Compressor, Setting
    from gradbed.hosts.protocols.frames import frame_type, mac_array, pack_datagrams, well_formed_datagrams
    from gradbed.topo.addressing import make_host, make_switch
    from gradbed.topo.graph import Endpoint, Host, Link, Switch, Topology
    from gradbed.topo.link import UNLIMITED, LinkModel

__all__ = [
    "FORWARD",
    "UNLIMITED",
    "AgentAddress",
    "AgentConfig",
    "AgentContext",
    "AgentResults",
    "AgentSpec",
    "CodedPacket",
    "CollectiveAction",
    "CollectiveCall",
    "CollectiveStep",
    "Compressor",
    "CongestionControl",
    "Content",
    "Endpoint",
    "Field",
    "Header",
    "Host",
    "HostAccount",
    "Link",
    "LinkModel",
    "Loan",
    "Metric",
    "NetworkCounts",
    "NetworkSetup",
    "NoSettings",
    "Observations",
    "Operation",
    "Phase",
    "PhaseResult",
    "Plan",
    "Program",
    "Progress",
    "RateSolver",
    "Schedule",
    "Section",
    "SendQueues",
    "Service",
    "Setting",
    "ShuffleInstance",
    "Switch",
    "SwitchCapabilities",
    "SwitchPlan",
    "System",
    "SystemOptions",
    "SystemReport",
    "SystemTools",
    "TableEntry",
    "Tally",
    "Timing",
    "Topology",
    "Transmission",
    "Trees",
    "Trial",
    "TrialConfiguration",
    "TrialResult",
    "TrialTask",
    "UserError",
    "disagreements",
    "frame_type",
    "host_accounts",
    "ip_integer",
    "mac_array",
    "make_host",
    "make_switch",
    "option",
    "pack_datagrams",
    "rows",
    "well_formed_datagrams",
]

_MODULES = {
    "gradbed.common.congestion_control": "CongestionControl",
    "gradbed.common.errors": "UserError",
    "gradbed.controller.core.service": "NoSettings Service",
    "gradbed.controller.planning.plan": "Plan SwitchPlan TableEntry",
    "gradbed.controller.systems.aggregation.placement.rate_solver": "RateSolver",
    "gradbed.controller.systems.shuffle.scheduling.instance": "ShuffleInstance",
    "gradbed.controller.systems.shuffle.scheduling.queues": "CodedPacket Loan SendQueues Timing",
    "gradbed.controller.systems.shuffle.scheduling.schedule": "Schedule Transmission",
    "gradbed.controller.systems.shuffle.scheduling.trees": "Trees",
    "gradbed.experiments.conservation.counts": "HostAccount Tally disagreements rows",
    "gradbed.experiments.conservation.checks": "host_accounts",
    "gradbed.experiments.configuration.trial": "TrialConfiguration",
    "gradbed.experiments.configuration.sections": "Section option",
    "gradbed.experiments.phases": (
        "AgentResults NetworkCounts Observations Phase PhaseResult Progress Trial TrialResult"
    ),
    "gradbed.experiments.programs": "FORWARD Program",
    "gradbed.experiments.setup": "NetworkSetup TrialTask",
    "gradbed.experiments.system": "SwitchCapabilities System SystemOptions SystemReport SystemTools",
    "gradbed.experiments.tables.metric": "Metric",
    "gradbed.experiments.runtimes.agents": "AgentSpec",
    "gradbed.formats.addresses": "ip_integer",
    "gradbed.formats.header": "Field Header",
    "gradbed.hosts.agents.context": "AgentContext",
    "gradbed.hosts.agents.config": "AgentAddress AgentConfig",
    "gradbed.hosts.compressors.content": "Content",
    "gradbed.hosts.compressors.methods": "Compressor Setting",
    "gradbed.hosts.protocols.frames": "frame_type mac_array pack_datagrams well_formed_datagrams",
    "gradbed.hosts.collectives.schedule": "CollectiveAction CollectiveCall CollectiveStep Operation",
    "gradbed.topo.addressing": "make_host make_switch",
    "gradbed.topo.graph": "Endpoint Host Link Switch Topology",
    "gradbed.topo.link": "LinkModel UNLIMITED",
}
__getattr__ = lazy_names(__name__, _MODULES)  # an agent loads nothing of the controller
