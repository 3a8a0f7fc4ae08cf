"""The link model: rate, delay, losses and queue of one link direction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from gradbed.common.errors import UserError

USUAL_MTU_BYTES = 1500
"""Of Ethernet interfaces: a frame without its Ethernet header."""

MOST_CHANNELS = 8
"""As many as v1model has priorities."""


@dataclass(frozen=True)
class LinkModel:
    """Rate, delay, loss, duplication and queue of a link; the same in both directions.

    rate_bps: bits per second of whole Ethernet frames (without preamble and FCS); None is unlimited.
    delay_us: propagation delay in microseconds.
    loss, duplicate: probabilities in [0, 1), drawn per packet and direction from a seeded generator.
    bit_error_rate: probability in [0, 1) that a bit arrives wrong, drawn likewise. The far end finds that by the
    frame check sequence and throws the frame away, which counts as a loss.
    queue_packets: packets that may wait for the link besides the one being sent; of each priority so many.
    jitter_us: delays are uniform in delay_us - jitter_us to delay_us + jitter_us, drawn per packet likewise.
    channels: of one cable, such as the wavelengths of a fibre, 1 to 8: packets of priority p take channel p, those of
    larger priorities the last. Each has the whole rate, and a queue and a transmitter of its own. Links in memory
    between switches can have several.
    turn_us, guard_us, first_turn: of a cable whose channels from 1 on send one after the other, for turn_us each; in
    the last guard_us of a turn nothing begins to be sent. At time 0 it is the turn of channel 1 + first_turn. turn_us
    0: no turns. Channel 0 takes none.
    reorder: whether a packet may overtake another that drew a longer delay (as with Linux's netem), or waits for it.
    pfc_xoff_bytes, pfc_xon_bytes: priority-based flow control (IEEE 802.1Qbb): a switch that holds more than xoff of
    one priority that came by this link lets the sender pause that priority, until it holds xon or less. xoff 0: none.
    """

    rate_bps: int | None = None
    delay_us: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    queue_packets: int = 1000
    jitter_us: int = 0
    reorder: bool = False
    channels: int = 1
    turn_us: int = 0
    guard_us: int = 0
    first_turn: int = 0
    bit_error_rate: float = 0.0
    pfc_xoff_bytes: int = 0
    pfc_xon_bytes: int = 0

    def __post_init__(self) -> None:
        if self.rate_bps is not None and self.rate_bps <= 0:
            raise UserError(f"link rate must be positive, got {self.rate_bps} bit/s")
        if self.delay_us < 0:
            raise UserError(f"link delay must not be negative, got {self.delay_us} us")
        for name in ("loss", "duplicate", "bit_error_rate"):
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise UserError(f"link {name.replace('_', ' ')} is a probability in [0, 1), got {value}")
        if self.queue_packets < 1:
            raise UserError(f"a link's queue holds at least one packet, got {self.queue_packets}")
        if not 1 <= self.channels <= MOST_CHANNELS:
            raise UserError(f"a link has 1 to {MOST_CHANNELS} channels, got {self.channels}")
        if self.turn_us < 0 or not 0 <= self.guard_us < max(1, self.turn_us):
            raise UserError(
                f"a link's turns are longer than their guard time, got {self.turn_us} and {self.guard_us} us"
            )
        if not 0 <= self.first_turn < MOST_CHANNELS:
            raise UserError(f"a link's first turn is 0 to {MOST_CHANNELS - 1}, got {self.first_turn}")
        if not 0 <= self.jitter_us <= self.delay_us:
            raise UserError(f"link jitter is between 0 and the delay of {self.delay_us} us, got {self.jitter_us} us")

        if not 0 <= self.pfc_xon_bytes <= self.pfc_xoff_bytes:
            raise UserError(
                f"a pause ends below where it begins: pfc_xon_bytes {self.pfc_xon_bytes} is not between 0 and "
                f"pfc_xoff_bytes {self.pfc_xoff_bytes}"
            )
        if self.pfc_xoff_bytes and (self.channels > 1 or self.reorder):
            raise UserError("a link with PFC has one channel, and packets on it do not overtake each other")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def pfc_thresholds(usual: LinkModel, xoff_bytes: int | None, xon_bytes: int | None) -> tuple[int, int]:
    """Return (pfc_xoff_bytes, pfc_xon_bytes) where one of them was given, or both. xoff alone: xon is half of it."""
    xoff = usual.pfc_xoff_bytes if xoff_bytes is None else xoff_bytes
    return xoff, xoff // 2 if xon_bytes is None else xon_bytes


PAUSE_BYTES = 60
"""Of a pause frame, as all lengths without the frame check sequence."""


def packets_without_loss(links: Iterable[LinkModel], least_bytes: int, most_bytes: int, priorities: int = 1) -> int:
    """Return the packets of one priority (queue_packets) that a queue must hold to lose none, given its input links.

    docs/lossless-ethernet.md derives it.

    Args:
        links: Input links, with PFC and a rate.
        least_bytes: Shortest frame of that priority.
        most_bytes: Longest frame in the reverse direction, behind which a pause frame may wait.
        priorities: Number of priorities that may be paused at the same time.
    """
    packets = 0
    for link in links:
        if link.rate_bps is None or not link.pfc_xoff_bytes:
            raise UserError("how much room a link's packets need follows from its rate and its pfc_xoff_bytes")
        round_trip_bits = -(-2 * (link.delay_us + link.jitter_us) * link.rate_bps // 1_000_000)
        late_bits = round_trip_bits + 8 * (most_bytes + priorities * PAUSE_BYTES)
        packets += link.pfc_xoff_bytes // least_bytes + 1 + -(-late_bits // (8 * least_bytes))
    return packets


UNLIMITED = LinkModel()
"""Without rate, delay and loss."""
