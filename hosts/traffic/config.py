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
    """The sizes of what arrives: frames, or flows of many frames (hosts/traffic/schedule.py).

    frame_bytes: of whole Ethernet frames without FCS. fixed: all are so long. uniform: from least_bytes to that.
    exponential: the mean, of a distribution that is cut to least_bytes and most_bytes. web-search, data-mining: of a
    flow's frames, all but its last. most_flow_bytes: longer flows are cut to it.
    """

    kind: PacketSizes | FlowSizes = "fixed"
    frame_bytes: int = Field(default=1000, ge=64, le=9234)
    least_bytes: int = Field(default=64, ge=64)
    most_bytes: int = Field(default=1514, le=9234)
    most_flow_bytes: int | None = Field(default=None, ge=1)


class TrafficStream(AgentConfig):
    """A stream from one host to another.

    rate_bps: of frames, the mean. packets: it ends after so many (flows: of them).

    flows: packets take turns in so many flows, which differ in their UDP source port; flow sizes make flows of their
    own. receiver: the destination's number in packets. dst_mac: of frames (None: the gateway's). headers: in place of
    Ethernet, IPv4 and UDP, one for each flow, as hexadecimal digits; frames are of a fixed size then.
    """

    destination: AgentAddress
    receiver: int = Field(ge=0, lt=MAX_SOURCES)
    rate_bps: float = Field(gt=0)
    flows: int = Field(default=1, ge=1, le=16384)
    packets: int | None = Field(default=None, ge=1)
    tos: int = Field(default=0, ge=0, le=255)
    dst_mac: Mac | None = None
    headers: tuple[Annotated[str, AfterValidator(_hexadecimal)], ...] | None = None


class EndpointConfig(AgentConfig):
    """A host that sends its streams, and receives what comes for it.

    source: its number in packets, another for each host. link_rate_bps: flows are sent one after the other at this
    rate. begin_us: it sends from so long after the agents begin. warm_up_us: what it sends in so long is marked, and
    not measured. duration_us: of sending; None: until all streams have sent their packets. seed: of the whole
    traffic. kept_packets: so many of its packets wait at a time, more or less: for their time to leave, or, once they
    have come, to be taken in. any_frame: it takes in every frame, and not only datagrams to udp_port;
    except_udp_port: but datagrams to this one, which another agent of the host takes in. replay: it sends a capture
    file besides.
    """

    address: AgentAddress
    source: int = Field(ge=0, lt=MAX_SOURCES)
    udp_port: int = Field(default=7011, ge=1, le=65535)
    streams: tuple[TrafficStream, ...] = ()
    arrivals: Arrivals = Arrivals()
    sizes: Sizes = Sizes()
    link_rate_bps: float = Field(default=1e9, gt=0)
    begin_us: int = Field(default=0, ge=0)
    warm_up_us: int = Field(default=0, ge=0)
    duration_us: int | None = Field(default=None, ge=1)
    seed: int = 1
    kept_packets: int = Field(default=1 << 14, ge=1)
    any_frame: bool = False
    except_udp_port: int | None = Field(default=None, ge=1, le=65535)
    replay: Replay | None = None

    @model_validator(mode="after")
    def _ends(self) -> EndpointConfig:
        if self.duration_us is None and any(stream.packets is None for stream in self.streams):
            raise ValueError("streams that do not end after so many packets need a duration")
        return self
