"""What a host of the traffic sends, and where it listens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from gradbed.formats.addresses import Mac
from gradbed.hosts.agents.config import AgentAddress, AgentConfig
from gradbed.hosts.traffic.replay import Replay

MAX_SOURCES = 1 << 15
MAX_FLOW_PACKETS = 1 << 32

ArrivalKind = Literal["constant", "poisson", "on-off"]
PacketSizes = Literal["fixed", "uniform", "exponential"]
FlowSizes = Literal["web-search", "data-mining"]


def _hexadecimal(text: str) -> str:
    bytes.fromhex(text)
    return text


class Arrivals(AgentConfig):
    """The process by which packets are sent, or flows begin, at a given mean rate.

    constant: at equal distances, from a random time on. poisson: exponentially distributed distances. on-off: at
    equal distances in bursts of on_us, with pauses of off_us between them; these are the means of exponential
    distributions (each stream for itself), or, with `constant` bursts, the lengths (all streams together).
    """

    kind: ArrivalKind = "constant"
    on_us: float = Field(default=1000.0, gt=0)
    off_us: float = Field(default=1000.0, ge=0)
    bursts: Literal["constant", "exponential"] = "exponential"


class Sizes(AgentConfig):
    """The sizes of what arrives: frames, or flows of many frames (hosts/traffic/schedule.py)."""

    kind: PacketSizes | FlowSizes = "fixed"
    frame_bytes: int = Field(default=1000, ge=64, le=9234)
    """Size of whole Ethernet frames without FCS. fixed: all have it. uniform: from least_bytes to it. exponential:
    the mean, of a distribution that is cut to least_bytes and most_bytes. web-search, data-mining: the size of a
    flow's frames, all but its last."""
    least_bytes: int = Field(default=64, ge=64)
    most_bytes: int = Field(default=1514, le=9234)
    most_flow_bytes: int | None = Field(default=None, ge=1)
    """Largest flow; longer ones are cut to it."""


class TrafficStream(AgentConfig):
    """A stream from one host to another."""

    destination: AgentAddress
    receiver: int = Field(ge=0, lt=MAX_SOURCES)
    """The destination's number in packets."""
    rate_bps: float = Field(gt=0)
    """Mean rate of frames."""
    flows: int = Field(default=1, ge=1, le=16384)
    """Number of flows in which packets take turns, and which differ in their UDP source port; flow sizes make flows
    of their own."""
    packets: int | None = Field(default=None, ge=1)
    """Packets (with flow sizes: flows) after which it ends."""
    tos: int = Field(default=0, ge=0, le=255)
    dst_mac: Mac | None = None
    """Destination MAC address of frames; None: the gateway's."""
    headers: tuple[Annotated[str, AfterValidator(_hexadecimal)], ...] | None = None
    """Headers in place of Ethernet, IPv4 and UDP, one for each flow, as hexadecimal digits; frames are of a fixed
    size then."""


class EndpointConfig(AgentConfig):
    """A host that sends its streams, and receives what comes for it."""

    address: AgentAddress
    source: int = Field(ge=0, lt=MAX_SOURCES)
    """Number of the host in packets, another for each host."""
    udp_port: int = Field(default=7011, ge=1, le=65535)
    streams: tuple[TrafficStream, ...] = ()
    arrivals: Arrivals = Arrivals()
    sizes: Sizes = Sizes()
    link_rate_bps: float = Field(default=1e9, gt=0)
    """Rate at which flows are sent, one after the other."""
    begin_us: int = Field(default=0, ge=0)
    """Time after the agents begin at which it starts to send."""
    warm_up_us: int = Field(default=0, ge=0)
    """Time in which what it sends is marked, and not measured."""
    duration_us: int | None = Field(default=None, ge=1)
    """Time for which it sends; None: until all streams have sent their packets."""
    seed: int = 1
    """Random seed of the whole traffic."""
    kept_packets: int = Field(default=1 << 14, ge=1)
    """Number of its packets that wait at a time, more or less: for their time to leave, or, once they have come, to
    be taken in."""
    any_frame: bool = False
    """Whether it takes in every frame, and not only datagrams to udp_port."""
    except_udp_port: int | None = Field(default=None, ge=1, le=65535)
    """UDP port of datagrams that another agent of the host takes in."""
    replay: Replay | None = None
    """Capture file that it sends besides."""

    @model_validator(mode="after")
    def _ends(self) -> EndpointConfig:
        if self.duration_us is None and any(stream.packets is None for stream in self.streams):
            raise ValueError("streams that do not end after so many packets need a duration")
        return self
