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
from gradbed.hosts.agents.fragment_streams import StreamOptions
from gradbed.hosts.agents.launching import ComputeTimes
from gradbed.topo.graph import Topology
from gradbed.topo.link import USUAL_MTU_BYTES


class Served(Protocol):
    """A system, as runtimes see it."""

    name: str
    service: str
    """Its controller service, as "module:Class"."""


@dataclass(frozen=True)
class TrialTask(Generic[Configuration_co]):
    """What one process is told to run: a trial with its seed and scale. It can be sent to another process."""

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
        """What an agent's computations take, in the emulated network's time."""
        timing = self.configuration.timing
        return ComputeTimes(timing.compute_us / self.scale.factor, timing.compute_distribution, self.seed)


@dataclass(frozen=True)
class Underlay:
    """A network whose switches carry the IPv4 unicast packets of other systems' agents, and do nothing else for them.

    topology: with links as these switches need them. switches: what each runs. service: their part of the controller.
    """

    topology: Topology
    switches: Mapping[str, SwitchProgram]
    service: ServiceConfig


@dataclass(frozen=True)
class StreamGroup:
    """Hosts for which switches sum, or copy. members: in the order of ranks. other: the host that adds up what
    switches could not, of sums; of copies the member that sends them. request: of the service's job. streams: of each
    end, by its host, once the service has answered."""

    members: tuple[str, ...]
    other: str
    request: BaseModel
    streams: Callable[[Mapping[str, Any]], Mapping[str, StreamOptions]]


@dataclass(frozen=True)
class SwitchCollectives:
    """What a system's switches do for other systems' ranks, whose unicast packets they carry besides."""

    switches: Mapping[str, SwitchProgram]
    service: ServiceConfig
    groups: Sequence[StreamGroup]
    classes: Sequence[PacketClass]


@dataclass(frozen=True)
class NetworkSetup:
    """The network of a trial, before it is up.

    switches: what every switch of the topology runs. links: of the kernel (veth) or queues in memory, between P4
    switches. settings: of the system's service at the controller; services: of other
    systems (Underlay). capture: hosts whose
    access links are captured where a study says `pcap: true`. preload: modules of agents, which take a while to
    load. keep_open: descriptors that agents inherit (real clock). hand_over: once the switches hold their plan, the
    controller lets go of them for another one (real clock). samples: what is sampled while phases run.
    registers: (switch, name) of those that are read at the end of each phase. coverage: whether to tell what of the
    programs packets reach; trace: which packet's way through all switches to tell (gradbed's switches; one of the
    two). warm_up_us: what links carry counts from so long after the agents begin, emulated.
    classes: of packets, which hosts and links count apart (experiments/conservation/checks.py). mtu_bytes: of
    the kernel's interfaces (real clock). notes: what of the files that describe it has no
    effect, in lines for people.
    """

    topology: Topology
    switches: Mapping[str, SwitchProgram]
    settings: BaseModel
    links: Literal["memory", "veth"] = "memory"
    services: Sequence[ServiceConfig] = ()
    capture: Sequence[str] = ()
    preload: Sequence[str] = ()
    keep_open: Sequence[int] = ()
    hand_over: bool = False
    samples: SampleOrder | None = None
    registers: Sequence[tuple[str, str]] = ()
    coverage: bool = False
    trace: Callable[[bytes], bool] | None = None
    warm_up_us: int = 0
    classes: Sequence[PacketClass] = BY_PROTOCOL
    mtu_bytes: int = USUAL_MTU_BYTES
    notes: Sequence[str] = ()
