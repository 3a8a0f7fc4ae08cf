"""Conservation of packets on the links of hosts: switches' counters against what hosts counted.

For a host behind port p of its switch, in packets and in bytes of whole Ethernet frames:

    switch received = host sent     + duplicates - losses - queue drops - socket drops (of the link to the switch)
    host received   = switch sent   + duplicates - losses                  (of the link to the host)
    host received   = agent counted + dropped by its socket (packets only)

The queue of a port is in front of the counters of the switch's egress, so its drops are not in the second line; but
that of a switch which another program runs is behind them, and then they are.
What a socket drops for want of room is counted in packets alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

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
            _less(self.sent, other.sent),
            _less(self.received, other.received),
            _less(self.paused_ns, other.paused_ns),
        )


def _less(now: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip_longest(now, before, fillvalue=0))


@dataclass(frozen=True)
class LinkEffect:
    """What one direction of a link did to packets."""

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
        """What the direction adds to the packets that its sender has counted, apart from socket drops."""
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
        """What the switch should count, but for what the socket in front of the link dropped."""
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
