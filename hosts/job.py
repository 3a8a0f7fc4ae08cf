"""The job description: all that an agent is told, as one JSON object."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from hosts.learning.fragments import fragment_count
from hosts.learning.settings import TrainingSettings
from hosts.learning.trainer import network
from hosts.protocols.gradient_format import BITMAP_BITS, LANE_MULTIPLE, MAX_LANES, PACKET_NUMBERS
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
SwitchNumber = Annotated[int, Field(ge=1, le=0xFFFF)]


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


class JobDescription(_Value):
    """One training job: who takes part, how packets are marked, what is trained."""

    job: int = Field(ge=1, le=0xFFFF)
    lanes: int = Field(default=MAX_LANES, ge=LANE_MULTIPLE, le=MAX_LANES, multiple_of=LANE_MULTIPLE)
    fan_in: int = Field(ge=0, le=BITMAP_BITS)
    """Workers that a designated switch waits for."""
    designated_switches: tuple[SwitchNumber, ...] = ()
    """Packet number n is summed at the n-th of these (modulo their number); none: at the server alone."""
    acknowledgement: Literal["multicast", "unicast"] = "unicast"
    multicast_ip: Ip | None = None
    multicast_mac: Mac | None = None
    workers: tuple[WorkerAddress, ...]
    server: AgentAddress
    window_fragments: int = Field(default=32, ge=1)
    min_timeout_us: int = Field(default=50_000, ge=1000)
    """How much longer than its usual round trip a fragment's timer is at least."""
    give_up_us: int = Field(default=30_000_000, ge=1000)
    """A worker ends with an error after so long without any answer."""
    first_packet_number: int = Field(default=0, ge=0, lt=PACKET_NUMBERS)
    training: TrainingSettings = TrainingSettings()

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
        if self.fan_in > len(self.workers):
            raise ValueError(f"fan_in is {self.fan_in}, but there are {len(self.workers)} workers")
        if self.acknowledgement == "multicast" and not (self.multicast_ip and self.multicast_mac):
            raise ValueError("acknowledgement by multicast needs multicast_ip and multicast_mac")
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
    def parameters(self) -> int:
        """Values in a gradient."""
        return network(self.training).parameters

    @property
    def fragments_per_round(self) -> int:
        return fragment_count(self.parameters, self.lanes)

    @property
    def full_bitmap(self) -> int:
        """Bitmap of all workers."""
        return (1 << len(self.workers)) - 1

    def first_number(self, round_number: int) -> int:
        """Packet number of a round's first fragment."""
        return (self.first_packet_number + round_number * self.fragments_per_round) % PACKET_NUMBERS

    def packet_number(self, round_number: int, fragment: int) -> int:
        return (self.first_number(round_number) + fragment) % PACKET_NUMBERS

    def designated_switch(self, packet_number: int) -> int:
        """Number of the switch that sums this fragment; 0: none."""
        if not self.designated_switches:
            return 0
        return self.designated_switches[packet_number % len(self.designated_switches)]
