"""What a trial runs on: its task, and its network before that is up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Generic, Literal, Protocol

from pydantic import BaseModel

from gradbed.controller.core.service import ServiceConfig
from gradbed.experiments.captures import CaptureOrder
from gradbed.experiments.configuration.sections import SampleOrder
from gradbed.experiments.configuration.trial import Configuration, Configuration_co
from gradbed.experiments.programs import SwitchProgram
from gradbed.experiments.scale import Scale
from gradbed.formats.packet_class import BY_PROTOCOL, PacketClass
from gradbed.hosts.agents.launching import ComputeTimes
from gradbed.hosts.agents.queue_pairs import StreamOptions
from gradbed.topo.graph import Topology
from gradbed.topo.link import USUAL_MTU_BYTES


class Served(Protocol):
    """A system, as runtimes see it."""

    name: str
    service: str
    """Its controller service, as "module:Class"."""


@dataclass(frozen=True)
class TrialTask(Generic[Configuration_co]):
    """Task of one process: a trial with its seed and scale, which can be sent to another process."""

    configuration: Configuration_co
    seed: int
    scale: Scale
    folder: Path
    """The trial's own folder, for logs and captures."""
    capture: CaptureOrder = False
    """What to leave captures of in the folder."""
    threads: int = 1
    """Upper limit of the threads that simulate a network on the virtual clock; results do not depend on it."""
    _: KW_ONLY
    system: str = ""
    """Name of the system; needed where no system is given otherwise."""
    digest: str = ""
    """Identifies the trial in its run folder."""
    attempts: int = 1
    """How often it is run in real time at most, as long as the machine cannot keep up."""
    limit_s: float | None = None
    """Time limit, of this machine's time; None: none."""

    def with_configuration(self, configuration: Configuration) -> TrialTask[Configuration]:
        """Return the same task with another configuration."""
        return replace(self, configuration=configuration)  # type: ignore[arg-type, return-value]

    @property
    def compute_times(self) -> ComputeTimes:
        """Return what an agent's computations take, in the emulated network's time."""
        timing = self.configuration.timing
        return ComputeTimes(timing.compute_us / self.scale.factor, timing.compute_distribution, self.seed)


@dataclass(frozen=True)
class FabricProgram:
    """The switch programs of one system as a network for another system's agents: IPv4 unicast and nothing else."""

    topology: Topology
    """Topology with links as these switches need them."""
    switches: Mapping[str, SwitchProgram]
    """What each switch runs."""
    service: ServiceConfig
    """Their part of the controller."""


@dataclass(frozen=True)
class StreamGroup:
    """Hosts for which switches sum, or copy."""

    members: tuple[str, ...]
    """In the order of ranks."""
    other: str
    """For sums the host that adds up what switches could not; for copies the member that sends them."""
    request: BaseModel
    """For the job of the service."""
    streams: Callable[[Mapping[str, Any]], Mapping[str, StreamOptions]]
    """Makes of the service's answer the streams of each end, by its host."""


@dataclass(frozen=True)
class SwitchCollectives:
    """Collectives that a system's switches carry out for ranks of other systems, whose unicast packets they also
    forward.
    """

    switches: Mapping[str, SwitchProgram]
    service: ServiceConfig
    groups: Sequence[StreamGroup]
    classes: Sequence[PacketClass]


@dataclass(frozen=True)
class NetworkSetup:
    """The network of a trial, before it is up."""

    topology: Topology
    switches: Mapping[str, SwitchProgram]
    """What every switch of the topology runs."""
    settings: BaseModel
    """Settings of the system's service at the controller."""
    links: Literal["memory", "veth"] = "memory"
    """Whether links between P4 switches are of the kernel (veth) or queues in memory."""
    services: Sequence[ServiceConfig] = ()
    """Services of other systems (FabricProgram)."""
    capture: Sequence[str] = ()
    """Hosts whose access links are captured where a study says `pcap: true`."""
    preload: Sequence[str] = ()
    """Modules of agents, which take a while to load."""
    keep_open: Sequence[int] = ()
    """Descriptors that agents inherit (real clock)."""
    hand_over: bool = False
    """Whether the controller releases the switches for another one once they hold their plan (real clock)."""
    samples: SampleOrder | None = None
    """What is sampled while phases run."""
    registers: Sequence[tuple[str, str]] = ()
    """Switch and name of the registers that are read at the end of each phase."""
    coverage: bool = False
    """Whether to report what packets reach of the programs (gradbed's switches)."""
    trace: Callable[[bytes], bool] | None = None
    """Chooses the packet that is traced through all switches (gradbed's switches); not together with coverage."""
    warm_up_us: int = 0
    """How long after the agents begin the measurement of link throughput starts, emulated."""
    classes: Sequence[PacketClass] = BY_PROTOCOL
    """Packet classes that hosts and links count separately (experiments/conservation/checks.py)."""
    mtu_bytes: int = USUAL_MTU_BYTES
    """MTU of the kernel's interfaces (real clock)."""
    notes: Sequence[str] = ()
    """Messages about parts of the network's files that have no effect."""
