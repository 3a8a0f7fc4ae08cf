"""The job description: all that an agent is told, as one JSON object."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from hosts.learning.fragments import fragment_count
from hosts.learning.settings import Settings, TrainingSettings
from hosts.learning.workload import gradient_values
from hosts.systems.aggregation.gradient_format import BITMAP_BITS, LANE_MULTIPLE, MAX_LANES, PACKET_NUMBERS, UDP_PORT
from hosts.transport.congestion_window import CongestionControl
from switch.errors import UserError

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)


def _checked_mac(text: str) -> str:
    if not _MAC.fullmatch(text):
        raise ValueError(f"'{text}' is not a MAC address such as 02:00:00:00:00:01")
    return text


def _checked_ip(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


Mac = Annotated[str, AfterValidator(_checked_mac)]
Ip = Annotated[str, AfterValidator(_checked_ip)]
SwitchNumber = Annotated[int, Field(ge=0, le=0xFFFF)]
Exchange = Literal["server", "ring", "gloo"]
FanIn = Annotated[int, Field(ge=0, le=BITMAP_BITS)]


def mac_bytes(mac: str) -> bytes:
    """02:00:00:00:00:01 as six bytes."""
    return bytes.fromhex(mac.replace(":", ""))


def ip_integer(ip: str) -> int:
    """10.0.0.1 as an integer."""
    return int(ipaddress.IPv4Address(ip))


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentAddress(_Value):
    """Where an agent lives. gateway_mac: of the edge switch, to which all its frames go."""

    name: str
    ip: Ip
    mac: Mac
    gateway_mac: Mac


class WorkerAddress(AgentAddress):
    """index: the worker's bit in worker bitmaps."""

    index: int = Field(ge=0)


class Designation(_Value):
    """Where a gradient is summed on its way: the label that its packet carries.

    switch_number: the designated switch (0: none, straight to the server). fan_in: workers whose gradients it waits
    for. next_switch, next_fan_in: the same of the second level, where the sum goes on to, and so does a packet that
    the first switch cannot take (0: none).
    """

    switch_number: SwitchNumber = 0
    fan_in: FanIn = 0
    next_switch: SwitchNumber = 0
    next_fan_in: FanIn = 0

    @model_validator(mode="after")
    def _consistent(self) -> Designation:
        if self.next_switch and not self.switch_number:
            raise ValueError("a gradient without a designated switch has no second one")
        for switch, fan_in in ((self.switch_number, self.fan_in), (self.next_switch, self.next_fan_in)):
            if (switch == 0) != (fan_in == 0):
                raise ValueError(f"switch {switch} cannot wait for {fan_in} workers")
            if switch == UDP_PORT:
                # Its packets would look like those without a designated switch.
                raise ValueError(f"no switch may have the number {UDP_PORT}, the UDP port of gradients")
        return self


DIRECT = Designation()
"""Straight to the server."""


class MulticastAddress(_Value):
    """A group that all workers belong to."""

    ip: Ip
    mac: Mac


class JobDescription(_Value):
    """One job: who takes part, where gradients are summed, what is computed."""

    job: int = Field(ge=1, le=0xFFFF)
    exchange: Exchange = "server"
    """Who sums. server: the parameter server, and switches on the way to it. ring: the workers, by ring all-reduce.
    gloo: the workers, by PyTorch's Gloo over TCP. Only the first has a server agent, and designations."""
    lanes: int = Field(default=MAX_LANES, ge=LANE_MULTIPLE, le=MAX_LANES, multiple_of=LANE_MULTIPLE)
    designations: tuple[tuple[Designation, ...], ...] = ()
    """For each worker, by index: packet number n is labelled with the n-th of them (modulo their number), or goes
    straight to the server if there are none. No tuples at all: that holds for every worker."""
    multicast: tuple[MulticastAddress, ...] = ()
    """Where the server sends the sum of packet number n: the n-th of these groups (modulo their number). None of
    them: to each worker by unicast."""
    workers: tuple[WorkerAddress, ...]
    server: AgentAddress
    window_fragments: int = Field(default=32, ge=1)
    """A worker never has more fragments unacknowledged."""
    congestion_control: CongestionControl = "aimd"
    """aimd: a worker's window follows what it hears of queues (ECN) and losses. ecn: of queues alone, which suits
    links that lose packets for other reasons. none: the window is always window_fragments."""
    slot_policy: Literal["dynamic", "static"] = "dynamic"
    """How switches choose slots. static: by packet number modulo slots, so that unacknowledged packet numbers of a
    worker may not lie window_fragments or more apart."""
    min_timeout_us: int = Field(default=50_000, ge=1000)
    """How much longer than its usual round trip a fragment's timer is at least."""
    give_up_us: int = Field(default=30_000_000, ge=1000)
    """A worker ends with an error after so long without any ACK."""
    first_packet_number: int = Field(default=0, ge=0, lt=PACKET_NUMBERS)
    workload: Settings = TrainingSettings()

    @model_validator(mode="after")
    def _consistent(self) -> JobDescription:
        if len(self.workers) > BITMAP_BITS:
            raise UserError(
                f"a job has at most {BITMAP_BITS} workers (bits of the worker bitmap), got {len(self.workers)}"
            )
        if not self.workers:
            raise ValueError("a job needs at least one worker")
        if [worker.index for worker in self.workers] != list(range(len(self.workers))):
            raise ValueError("workers must be listed in the order of their indices 0, 1, 2, ...")
        if self.designations and len(self.designations) != len(self.workers):
            raise ValueError(f"designations are for {len(self.designations)} of {len(self.workers)} workers")
        if len({len(own) for own in self.designations if own}) > 1:
            raise ValueError("workers with designations must have equally many")
        most = max((max(d.fan_in, d.next_fan_in) for own in self.designations for d in own), default=0)
        if most > len(self.workers):
            raise ValueError(f"a switch waits for {most} workers, but there are {len(self.workers)}")
        addresses = [agent.ip for agent in (*self.workers, self.server)]
        if len(set(addresses)) != len(addresses):
            raise ValueError("two agents of the job have the same IP address")
        return self

    @classmethod
    def parse(cls, description: Any) -> JobDescription:
        """From JSON text or a decoded JSON object. Raises UserError with one line."""
        try:
            if isinstance(description, (str, bytes)):
                return cls.model_validate_json(description)
            return cls.model_validate(description)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "as a whole"
            raise UserError(f"job description, {where}: {first['msg']}") from None

    @property
    def values(self) -> int:
        """Length of a gradient."""
        return gradient_values(self.workload)

    @property
    def fragments_per_round(self) -> int:
        return fragment_count(self.values, self.lanes)

    @property
    def full_bitmap(self) -> int:
        """Bitmap of all workers."""
        return (1 << len(self.workers)) - 1

    def first_number(self, round_number: int) -> int:
        """Packet number of a round's first fragment."""
        return (self.first_packet_number + round_number * self.fragments_per_round) % PACKET_NUMBERS

    def packet_number(self, round_number: int, fragment: int) -> int:
        return (self.first_number(round_number) + fragment) % PACKET_NUMBERS

    def designations_of(self, worker: int) -> tuple[Designation, ...]:
        """The labels that a worker deals to its packets in turn; at least one."""
        return (self.designations[worker] if self.designations else ()) or (DIRECT,)
