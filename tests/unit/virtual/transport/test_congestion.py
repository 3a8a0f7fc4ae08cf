"""Congestion control against the rules of RFC 8257 and of the DCQCN paper, computed here with fractions and floats.

The peer is a host without a NIC: the test itself acknowledges, marks and notifies.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.formats.roce import Opcode
from gradbed.hosts.agents.queue_pairs import CONGESTION_CONTROLS
from gradbed.hosts.transport.congestion_window import CONGESTION_CONTROLS as WINDOW_CONTROLS
from gradbed.topo.link import LinkModel
from tests.command import ROOT
from tests.examples import examples
from tests.unit.virtual.transport import roce_frames as rf
from tests.unit.virtual.transport.network import Line

MTU_BYTES = 1000
MOST_PACKETS = 64
TIMEOUT_NS = 1_000_000


# ---- DCTCP ----

Event = tuple[Literal["acknowledged", "missing", "timeout"], int, int]
"""Packets that are newly acknowledged, and how many of them were marked (of 8)."""


@dataclass
class Dctcp:
    """RFC 8257, section 3.3, in bytes; between its reductions TCP's growth and losses (RFC 5681)."""

    window: Fraction = Fraction(MOST_PACKETS * MTU_BYTES)
    alpha: Fraction = Fraction(1)
    slow_start: Fraction = Fraction(MOST_PACKETS * MTU_BYTES)
    acked: int = 0
    marked: int = 0
    window_end: int = 0
    loss_end: int = 0
    rounding: Fraction = Fraction(0)
    """Bound on how far an engine in whole bytes may be from the window."""

    def acknowledged(self, packets: int, marked: int, una: int, sent: int) -> None:
        """una: packets acknowledged by now; sent: that were ever sent before this acknowledgement."""
        self.acked += packets
        self.marked += marked
        if una <= self.window_end:
            return
        if self.acked:
            self.alpha = self.alpha * Fraction(15, 16) + Fraction(min(self.marked, self.acked), self.acked) / 16
        if self.marked and self.acked:
            # A byte for the reduction, and 32 units of the engine's 2^-20 for an alpha of two roundings a window.
            self.rounding = self.rounding * (1 - self.alpha / 2) + 1 + self.window * Fraction(32, 2 << 20)
            self.window *= 1 - self.alpha / 2
            self.slow_start = self.window
        elif self.window < self.slow_start:
            self.window += self.acked * MTU_BYTES
        else:
            self.window += MTU_BYTES
        self.window = min(max(self.window, Fraction(MTU_BYTES)), Fraction(MOST_PACKETS * MTU_BYTES))
        self.acked = self.marked = 0
        self.window_end = sent

    def lost(self, una: int, sent: int) -> None:
        if una >= self.loss_end:
            self.rounding = self.rounding / 2 + 1
            self.window = self.slow_start = max(self.window / 2, Fraction(MTU_BYTES))
            self.loss_end = sent

    def timed_out(self, sent: int) -> None:
        self.slow_start = max(self.window / 2, Fraction(2 * MTU_BYTES))
        self.window = Fraction(MTU_BYTES)
        self.loss_end = sent


@dataclass
class Peer:
    """Host 2, without a NIC."""

    line: Line
    una: int = 0
    marked_bytes: int = 0
    sent: int = field(default=0, init=False)

    def look(self) -> None:
        """What has come: how many packets were ever sent."""
        self.line.run(self.line.simulated.now_ns + TIMEOUT_NS // 10)
        frames, _ = self.line.interface(2).receive()
        self.sent = max([self.sent, *(rf.bth_of(frame.tobytes())["psn"] + 1 for frame in frames)])

    def tell(self, missing: bool = False) -> None:
        selective = {"marked_bytes": self.marked_bytes % 2**32}
        frame = rf.acknowledgement(2, 1, self.una, missing=missing, selective=selective)
        self.line.interface(2).send(np.frombuffer(frame, np.uint8)[None])


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["acknowledged"] * 8 + ["missing", "timeout"]),
        st.integers(1, 20),
        st.sampled_from([0, 0, 0, 1, 4, 8]),
    ),
    min_size=5,
    max_size=60,
)  # fmt: skip


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(events=EVENTS)
def test_a_window_follows_rfc_8257(events: Sequence[Event]) -> None:
    model = Dctcp()
    with Line([1, 1], LinkModel(rate_bps=10**11)) as line:
        line.connect_end(
            1, 2, 1, 1, mtu_bytes=MTU_BYTES, window_bytes=MOST_PACKETS * MTU_BYTES, congestion_control="dctcp",
            timeout_ns=TIMEOUT_NS, give_up_after=100,
        )  # fmt: skip
        line.open(1).send(1, 7, 10**9)
        peer = Peer(line)
        peer.look()
        for kind, packets, eighths in events:
            if kind == "acknowledged":
                packets = min(packets, peer.sent - peer.una)
                marked = packets * eighths // 8
                peer.una += packets
                peer.marked_bytes += marked * MTU_BYTES
                model.acknowledged(packets, marked, peer.una, peer.sent)
                peer.tell()
            elif kind == "missing":
                model.acknowledged(0, 0, peer.una, peer.sent)
                model.lost(peer.una, peer.sent)
                peer.tell(missing=True)
            else:
                before = line.open(1).statistics(1)["timeouts"]
                while line.open(1).statistics(1)["timeouts"] == before:
                    line.run(line.simulated.now_ns + 1000)
                model.timed_out(peer.sent)
            peer.look()
            window = line.open(1).statistics(1)["window_bytes"]
            assert abs(window - model.window) <= model.rounding, (kind, packets, eighths)
            assert peer.sent - peer.una >= window // MTU_BYTES


def test_marks_count_once_whatever_becomes_of_acknowledgements() -> None:
    """One is lost, another overtaken: the next one tells of all marks."""
    with Line([1, 1], LinkModel(rate_bps=10**11)) as line:
        line.connect_end(
            1, 2, 1, 1, mtu_bytes=MTU_BYTES, window_bytes=32_000, congestion_control="dctcp", timeout_ns=10**9
        )
        line.open(1).send(1, 7, 10**9)
        peer = Peer(line)
        peer.look()
        peer.una, peer.marked_bytes = 1, 0
        peer.tell()
        peer.look()
        for una, marked in ((5, 5), (3, 1), (33, 8)):
            peer.una, peer.marked_bytes = una, 1000 * marked
            peer.tell()
        peer.look()
        # The window that ended has 32 packets, 8 of them marked; alpha was 15/16 before.
        alpha = Fraction(15, 16) * Fraction(15, 16) + Fraction(8, 32) / 16
        assert abs(line.open(1).statistics(1)["window_bytes"] - 32_000 * (1 - alpha / 2)) <= 1


# ---- DCQCN ----

LINE_BPS = 10**11
ALPHA_NS = RATE_NS = 55_000
EVENT_BYTES = 10_000_000
FRAME_BYTES = 54 + 4096 + 4
"""In the middle of a message."""


@dataclass
class Dcqcn:
    """Section 3 of the paper, with the parameters of its figure 14."""

    rate: float = LINE_BPS
    target: float = LINE_BPS
    alpha: float = 1.0
    time_stage: int = 0
    byte_stage: int = 0
    alpha_at_ns: int | None = None
    rate_at_ns: int | None = None
    bytes_at_event: int = 0

    def notified(self, now_ns: int, sent_bytes: int) -> None:
        self.target = self.rate
        self.rate = max(self.rate * (1 - self.alpha / 2), LINE_BPS / 1000)
        self.alpha = self.alpha * 255 / 256 + 1 / 256
        self.time_stage = self.byte_stage = 0
        self.alpha_at_ns, self.rate_at_ns, self.bytes_at_event = now_ns + ALPHA_NS, now_ns + RATE_NS, sent_bytes

    def goes_on(self, now_ns: int, sent_bytes: int) -> None:
        """Up to now."""
        while self.alpha_at_ns is not None and self.alpha_at_ns <= now_ns:
            self.alpha, self.alpha_at_ns = self.alpha * 255 / 256, self.alpha_at_ns + ALPHA_NS
        while self.rate_at_ns is not None and self.rate_at_ns <= now_ns:
            self.rate_at_ns += RATE_NS
            self.time_stage += 1
            self._increase()
        if self.rate_at_ns is not None and sent_bytes - self.bytes_at_event >= EVENT_BYTES:
            # With the frame that made them enough.
            self.bytes_at_event += -(-EVENT_BYTES // FRAME_BYTES) * FRAME_BYTES
            self.byte_stage += 1
            self._increase()

    def _increase(self) -> None:
        stages = self.time_stage, self.byte_stage
        if min(stages) > 5:
            self.target += (min(stages) - 5) * 10 * LINE_BPS / 1000
        elif max(stages) >= 5:
            self.target += LINE_BPS / 1000
        self.target = min(self.target, LINE_BPS)
        self.rate = (self.rate + self.target) / 2
        if LINE_BPS - self.rate <= LINE_BPS / 2**20:
            self.rate, self.rate_at_ns = LINE_BPS, None


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize(
    ("notified_us", "until_us"),
    [
        ((100,), 3000),
        ((100, 160, 230, 300), 5000),
        (tuple(range(50, 2000, 50)), 4000),
        ((20, 80), 13_000),
        ((20, 1000, 1900), 6000),
    ],
)
def test_a_rate_follows_the_paper(notified_us: tuple[int, ...], until_us: int) -> None:
    model, samples = Dcqcn(), []
    with Line([1, 1], LinkModel(rate_bps=LINE_BPS)) as line:
        line.connect_end(1, 2, 1, 1, congestion_control="dcqcn", timeout_ns=10**9)
        line.open(1).send(1, 7, 2**31)
        notification = np.frombuffer(rf.notification(2, 1), np.uint8)[None]
        for now_us in range(until_us):
            line.run(1000 * now_us)
            line.interface(2).receive()
            if now_us in notified_us:
                before = line.open(1).statistics(1)["cnps_received"]
                line.interface(2).send(notification)
                while line.open(1).statistics(1)["cnps_received"] == before:
                    line.run(line.simulated.now_ns + 1)
            sent_bytes = line.open(1).counts()["sent_bytes"]
            model.goes_on(line.simulated.now_ns, sent_bytes)
            if now_us in notified_us:
                model.notified(line.simulated.now_ns, sent_bytes)
            rate = line.open(1).statistics(1)["rate_bps"]
            assert rate == pytest.approx(model.rate, rel=1e-5), now_us
            samples.append(rate)
    assert min(samples) < LINE_BPS / 1.9
    assert samples[-1] > min(samples)
    if until_us == 13_000:
        assert min(model.time_stage, model.byte_stage) > 5, "no hyper increase was seen"


def test_frames_leave_at_the_rate() -> None:
    """Of whole frames, without a rest that is lost."""
    rate_bps = 333_333_333
    with Line([1, 1], LinkModel(rate_bps=LINE_BPS)) as line:
        line.connect_end(1, 2, 1, 1, rate_bps=rate_bps, timeout_ns=10**9)
        line.open(1).send(1, 7, 10**6)
        line.run(30_000_000)
        frames, lengths = line.interface(2).receive()
        starts = [
            int(at) - 2 * (8 * int(length) // 100)
            for at, length in zip(line.interface(2).times_ns, lengths, strict=True)
        ]
        before = 0
        for start_ns, length in zip(starts, lengths.tolist(), strict=True):
            assert abs(start_ns - before * 8e9 / rate_bps) <= 3
            before += length
    assert len(frames) == 245


@pytest.mark.parametrize("every_us", [1, 7, 49, 50, 51, 120])
def test_a_receiver_notifies_at_most_every_50_us(every_us: int) -> None:
    with Line([1, 1], LinkModel(rate_bps=LINE_BPS)) as line:
        line.connect_end(1, 2, 1, 1, congestion_control="dcqcn")
        marked = [np.frombuffer(rf.write(2, 1, b"abcd", psn=psn, tos=3), np.uint8) for psn in range(400)]
        times_ns = np.arange(400) * every_us * 1000 + 1000
        line.interface(2).send(np.stack(marked), times_ns=times_ns)
        line.run()
        frames, _ = line.interface(2).receive()
        opcodes = np.array([rf.bth_of(frame.tobytes())["opcode"] for frame in frames])
        at_ns = line.interface(2).times_ns.astype(np.int64)[opcodes == Opcode.CNP]
        statistics = line.open(1).statistics(1)
    expected, last = [], None
    for time_ns in times_ns.tolist():
        if last is None or time_ns - last >= 50_000:
            expected.append(last := time_ns)
    assert (statistics["marked"], statistics["cnps_sent"]) == (400, len(expected))
    assert np.diff(at_ns).tolist() == np.diff(expected).tolist()


def test_what_is_marked_on_its_way_slows_a_nic_down() -> None:
    """Both ends are NICs: 16 packets of a marked message give one notification."""
    options: dict[str, Any] = {"congestion_control": "dcqcn"}
    with Line([1, 1], LinkModel(rate_bps=LINE_BPS)) as line:
        line.connect(1, 2, **options)
        line.open(1).send(1, 7, 100)
        line.run()
        marked = np.frombuffer(rf.write(1, 2, b"abcd", psn=1, tos=3), np.uint8)[None]
        line.interface(1).send(marked)
        line.run(line.simulated.now_ns + 10_000)
        assert line.open(2).statistics(1)["cnps_sent"] == 1
        assert line.open(1).statistics(1)["rate_bps"] == LINE_BPS // 2


# ---- Where controls are named ----


def test_hosts_and_engine_have_the_same_controls() -> None:
    """And agree on what each of them needs."""
    with Line([1, 1], LinkModel()) as line:
        engine = line.simulated.engine
        for number, (name, control) in enumerate(CONGESTION_CONTROLS.items(), 1):
            assert engine.call("congestion_control", name.encode()) >= 0
            if control.needs_window:
                with pytest.raises(UserError, match=f"{name} is a congestion control .* window"):
                    line.connect_end(1, 2, number, 1, congestion_control=name)
            line.connect_end(1, 2, number, 1, congestion_control=name, window_bytes=32_000, rate_bps=10**9)
        assert engine.call("congestion_control", b"cubic") < 0
    numbers = (ROOT / "switch/runtime/engine/transport/congestion.c").read_text().count("    &congestion_")
    assert numbers == len(CONGESTION_CONTROLS) + 1, "all controls but that of callbacks are known to hosts"


WINDOW_FILES = {
    "hosts/transport/congestion_window.py",
    "hosts/transport/congestion_window.h",
}
"""Where a control of the other senders is named."""


def is_named(name: str, source: str, *, python: bool) -> bool:
    """Whether code names a control: in an identifier, or as a whole string. Comments and other strings may."""
    if name not in source:
        return False
    word = re.compile(f"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", re.IGNORECASE)
    if not python:
        return bool(word.search(re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)))
    return any(
        word.search(token.string) if token.type == tokenize.NAME else token.string.strip("\"'") == name
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type in (tokenize.NAME, tokenize.STRING)
    )


@pytest.mark.parametrize(
    ("source", "python", "expected"),
    [
        ('"""As fast as it is."""\n# fast\nx = "not fast"\nfaster = 1\n', True, False),
        ('x = {"fast": 1}\n', True, True),
        ("FAST_GAIN = fast_gain\n", True, True),
        ("/* fast,\n * fast */\nint faster; // fast\n", False, False),
        ("extern const struct congestion_control congestion_fast;\n", False, True),
        ('.name = "fast",\n', False, True),
    ],
)
def test_what_names_a_control(source: str, python: bool, expected: bool) -> None:
    assert is_named("fast", source, python=python) == expected


@pytest.mark.parametrize("name", sorted(CONGESTION_CONTROLS.keys() - {"none"}))
def test_a_control_is_named_in_three_files(name: str) -> None:
    """Its own, and the lists of the engine and of hosts (CONTRIBUTING.md, "Add a congestion control").

    One that windows have as well may be named in three more.
    """
    folders = ("common", "controller", "hosts", "switch", "experiments")
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".c", ".h"))
    found = {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if is_named(name, path.read_text(encoding="utf-8"), python=path.suffix == ".py")
    }
    assert found - (WINDOW_FILES if name in WINDOW_CONTROLS else set()) == {
        f"switch/runtime/engine/transport/congestion/{name}.c",
        "switch/runtime/engine/transport/congestion.c",
        "hosts/agents/queue_pairs.py",
    }
