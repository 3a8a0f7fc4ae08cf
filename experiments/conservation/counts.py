"""Counts of a network at one time, and what links carried between two times.

Counts are those of switches (counters), of links, and of hosts' interfaces. For each link of a host, the switch must
count what the host sent, apart from what the link itself did to packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from gradbed.emulation.statistics import ClassCounts, DirectionStatistics
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.topo.graph import Direction

# ---- Links of hosts ----


MAX_LINES = 5
"""Of one kind of failure, in a trial."""


@dataclass(frozen=True)
class Tally:
    """Packets, and bytes of whole Ethernet frames."""

    packets: int = 0
    bytes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.packets + other.packets, self.bytes + other.bytes)

    def __sub__(self, other: Tally) -> Tally:
        return Tally(self.packets - other.packets, self.bytes - other.bytes)


@dataclass(frozen=True)
class Pauses:
    """PFC pauses of one link direction, by priority (IEEE 802.1Qbb)."""

    sent: tuple[int, ...] = ()
    """Pauses that the receiver sent."""
    received: tuple[int, ...] = ()
    """Pauses that the transmitter took."""
    paused_ns: tuple[int, ...] = ()
    """How long the transmitter paused."""

    def __sub__(self, other: Pauses) -> Pauses:
        return Pauses(
            _counter_difference(self.sent, other.sent),
            _counter_difference(self.received, other.received),
            _counter_difference(self.paused_ns, other.paused_ns),
        )


def _counter_difference(now: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip_longest(now, before, fillvalue=0))


@dataclass(frozen=True)
class LinkEffect:
    """Effect of one link direction on packets."""

    losses: Tally = Tally()
    duplicates: Tally = Tally()
    queue_drops: Tally = Tally()
    pauses: Pauses = Pauses()
    socket_drops: int = 0
    """Packets dropped by the socket in front of the link, whose lengths are unknown."""
    from_outside: bool = False
    """The sender is no switch of ours: what it counted is in front of the queue."""

    def __sub__(self, other: LinkEffect) -> LinkEffect:
        return LinkEffect(
            self.losses - other.losses,
            self.duplicates - other.duplicates,
            self.queue_drops - other.queue_drops,
            self.pauses - other.pauses,
            self.socket_drops - other.socket_drops,
            self.from_outside,
        )

    @property
    def change(self) -> Tally:
        """Packets that the direction adds to those that its sender has counted, apart from socket drops."""
        made = self.duplicates - self.losses
        return made - self.queue_drops if self.from_outside else made

    @property
    def lost_packets(self) -> int:
        """Packets that it did not deliver, for any reason."""
        return self.losses.packets + self.queue_drops.packets + self.socket_drops


@dataclass(frozen=True)
class HostAccount:
    """A host's access link as counted at both ends."""

    host: str
    host_sent: Tally
    host_received: Tally
    socket_drops: int
    switch_received: Tally
    switch_sent: Tally
    towards_switch: LinkEffect
    towards_host: LinkEffect

    @property
    def expected_at_switch(self) -> Tally:
        """Packets that the switch should count, apart from drops of the socket in front of the link."""
        link = self.towards_switch
        return self.host_sent + link.duplicates - link.losses - link.queue_drops

    @property
    def expected_at_host(self) -> Tally:
        return self.switch_sent + self.towards_host.change

    def disagreements(self) -> list[str]:
        """Return one line for each equation that does not hold."""
        lines = []
        drops = self.towards_switch.socket_drops
        if not _is_explained(self.expected_at_switch - self.switch_received, drops):
            dropped = f" less {drops} dropped by the link's socket" if drops else ""
            lines.append(
                f"{self.host}: its switch counted {_words(self.switch_received)} from it, "
                f"its own count makes {_words(self.expected_at_switch)}{dropped}"
            )
        if not _is_explained(
            self.expected_at_host - self.host_received, self.socket_drops + self.towards_host.socket_drops
        ):
            lines.append(
                f"{self.host}: its switch sent it {_words(self.expected_at_host)}, it counted "
                f"{_words(self.host_received)} and {self.socket_drops} dropped by its socket"
            )
        return lines


def disagreements(accounts: Iterable[HostAccount]) -> list[str]:
    """Return all lines in which switches and hosts disagree; empty when the counts can be trusted."""
    return [line for account in accounts for line in account.disagreements()]


def first_lines(lines: Iterable[str]) -> list[str]:
    """Return the first lines of one kind of failure, and how many more there are."""
    found = list(lines)
    more = len(found) - MAX_LINES
    return [*found[:MAX_LINES], *([f"and {more} more"] if more > 0 else [])]


def rows(phase: str, job: int, accounts: Sequence[HostAccount]) -> list[dict[str, object]]:
    """Return the checked links as rows for a CSV file."""
    return [
        {
            "phase": phase,
            "job": job,
            "host": a.host,
            "host_sent_packets": a.host_sent.packets,
            "host_sent_bytes": a.host_sent.bytes,
            "switch_received_packets": a.switch_received.packets,
            "switch_received_bytes": a.switch_received.bytes,
            "switch_sent_packets": a.switch_sent.packets,
            "switch_sent_bytes": a.switch_sent.bytes,
            "host_received_packets": a.host_received.packets,
            "host_received_bytes": a.host_received.bytes,
            "socket_drops": a.socket_drops,
            "agrees": not a.disagreements(),
        }
        for a in accounts
    ]


def _is_explained(missing: Tally, socket_drops: int) -> bool:
    """Return whether socket drops explain what is missing; bytes are compared only without drops."""
    return missing.packets == socket_drops and (socket_drops > 0 or missing.bytes == 0)


def _words(tally: Tally) -> str:
    return f"{tally.packets} packets ({tally.bytes} bytes)"


# ---- The network at one time ----


Cells = Mapping[int, Tally]
"""Of one counter array: its cells that are not zero, by index."""


@dataclass(frozen=True)
class Counts:
    """Counts of a whole network at one time."""

    counters: Mapping[str, Mapping[str, Cells]] = field(default_factory=dict)
    """P4 counters, by switch and by the last part of the counter's name."""
    delivered: Mapping[Direction, Tally] = field(default_factory=dict)
    """What each link direction delivered."""
    effects: Mapping[Direction, LinkEffect] = field(default_factory=dict)
    """What each link direction did to the rest. Links that cannot tell losses count as having none."""
    devices: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By switch, what became of packets that did not leave it (NetworkBackend.device_statistics)."""
    program_drops: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By switch and by where in the program (NetworkBackend.program_drops)."""
    classes: ClassCounts = field(default_factory=ClassCounts)
    """What links and switches counted by packet class, where all counters were asked for."""

    @classmethod
    def read(cls, runtime: Runtime) -> Counts:
        """Read the counters of every switch and every link."""
        counters = {switch: _by_name(found) for switch, found in runtime.all_counters().items()}
        return replace(cls.of_links(runtime), counters=counters, classes=runtime.backend.classes())

    @classmethod
    def of_links(cls, runtime: Runtime) -> Counts:
        """Read the counts without the counters of programs, which take a while."""
        links = runtime.backend.link_statistics()
        return cls(
            delivered={(row.from_node, row.to_node): Tally(row.packets, row.bytes) for row in links},
            effects={
                (row.from_node, row.to_node): LinkEffect(
                    losses=Tally(row.losses, row.lost_bytes),
                    duplicates=Tally(row.duplicates, row.duplicate_bytes),
                    # Bytes of drops that nobody counted come out as a disagreement in bytes.
                    queue_drops=Tally(row.queue_drops, row.queue_drop_bytes or 0),
                    pauses=Pauses(row.pauses_sent, row.pauses_received, row.paused_ns),
                    socket_drops=row.socket_drops,
                    from_outside=row.from_outside,
                )
                for row in links
            },
            devices=runtime.backend.device_statistics(),
            program_drops=runtime.backend.program_drops(),
        )

    def since(self, before: Counts) -> Counts:
        """Return what was counted since `before`. A switch that lost its counters meanwhile counts from zero."""
        return Counts(
            counters={
                switch: {
                    name: {i: _less(tally, before.cell(switch, name, i)) for i, tally in cells.items()}
                    for name, cells in counters.items()
                }
                for switch, counters in self.counters.items()
            },
            delivered={link: tally - before.delivered.get(link, Tally()) for link, tally in self.delivered.items()},
            effects={link: effect - before.effects.get(link, LinkEffect()) for link, effect in self.effects.items()},
            devices=_rise(self.devices, before.devices),
            program_drops=_rise(self.program_drops, before.program_drops),
            classes=self.classes.since(before.classes),
        )

    def has(self, switch: str, counter: str) -> bool:
        return counter in self.counters.get(switch, {})

    def cell(self, switch: str, counter: str, index: int) -> Tally:
        """Zero where the switch has no such counter, or nothing in that cell."""
        return self.counters.get(switch, {}).get(counter, {}).get(index, Tally())

    def effect(self, sender: str, receiver: str) -> LinkEffect:
        return self.effects.get((sender, receiver), LinkEffect())

    def link_account(self, host: str, switch: str, sent: Tally, received: Tally, socket_drops: int) -> HostAccount:
        """A host's own counts beside what its link counted, for a switch that cannot tell what a system's packets
        are."""
        towards_switch, towards_host = self.effect(host, switch), self.effect(switch, host)
        return HostAccount(
            host=host,
            host_sent=sent,
            host_received=received,
            socket_drops=socket_drops,
            switch_received=self.delivered.get((host, switch), Tally()),
            switch_sent=self.delivered.get((switch, host), Tally())
            - towards_host.change
            + Tally(towards_host.socket_drops),
            towards_switch=towards_switch,
            towards_host=towards_host,
        )

    @property
    def byte_hops(self) -> int:
        """Bytes that all links have carried together."""
        return sum(tally.bytes for tally in self.delivered.values())

    def link_rows(
        self, achieved: Mapping[Direction, float], nominal_us: Callable[[float], float] = float
    ) -> list[dict[str, Any]]:
        """Return the rows of the table "links": packets and losses of every link direction.

        Where PFC paused any link, all rows have pauses: their number, and the time of each priority that was paused.

        Args:
            achieved: fraction of its rate that a direction achieved while packets waited for it.
            nominal_us: nominal time of microseconds on the emulated network.
        """
        rows = []
        paused = sorted(
            {p for each in self.effects.values() for p, count in enumerate(each.pauses.received) if count}
        )
        for direction, carried in self.delivered.items():
            effect = self.effect(*direction)
            rows.append(
                {
                    "from": direction[0],
                    "to": direction[1],
                    "packets": carried.packets,
                    "bytes": carried.bytes,
                    "queue_drops": effect.queue_drops.packets,
                    "socket_drops": effect.socket_drops,
                    "losses": effect.losses.packets,
                    "duplicates": effect.duplicates.packets,
                    "achieved": achieved.get(direction),
                    **(_pause_cells(effect.pauses, paused, nominal_us) if paused else {}),
                }
            )
        return rows


def _pause_cells(pauses: Pauses, priorities: Iterable[int], nominal_us: Callable[[float], float]) -> dict[str, float]:
    times = {p: pauses.paused_ns[p] if pauses.paused_ns else 0 for p in priorities}
    return {
        "pauses_sent": sum(pauses.sent),
        "pauses_received": sum(pauses.received),
        **{f"paused_us_{p}": nominal_us(time_ns / 1000) for p, time_ns in times.items()},
    }


def _by_name(counters: Mapping[str, list[dict[str, int]]]) -> dict[str, dict[int, Tally]]:
    return {
        full.rsplit(".", 1)[-1]: {cell["index"]: Tally(cell["packets"], cell["bytes"]) for cell in cells}
        for full, cells in counters.items()
    }


def _rise(now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return the counts in between, by switch and name; never negative, since a restart resets counters."""
    return {
        switch: {name: max(0, value - before.get(switch, {}).get(name, 0)) for name, value in counts.items()}
        for switch, counts in now.items()
    }


def _less(now: Tally, before: Tally) -> Tally:
    return now if now.packets < before.packets else now - before


# ---- Between two times ----


LinkRows = Mapping[Direction, DirectionStatistics]


@dataclass(frozen=True)
class LinkBytes:
    """Bytes of each link direction between two times, in emulated microseconds since the agents began."""

    bytes: Mapping[Direction, int] = field(default_factory=dict)
    from_us: int = 0
    to_us: int = 0
    before: LinkRows = field(default_factory=dict)
    after: LinkRows = field(default_factory=dict)

    def load(self, direction: Direction, rate_bps: int | None) -> float | None:
        """The part of a rate (bit/s, emulated) that a direction used; None: it has none, or no time was taken."""
        taken_us = self.to_us - self.from_us
        if not rate_bps or taken_us <= 0 or direction not in self.bytes:
            return None
        return 8e6 * self.bytes[direction] / (rate_bps * taken_us)
