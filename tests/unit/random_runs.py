"""What random runs of all systems have in common: what is drawn and run, faults, and what hosts' NICs saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gradbed.switch.virtual import HostInterface
from gradbed.topo.graph import Topology

Outcome = Literal["right", "failed", "refused"]
"""Of a run: its result is right; it says that it failed; it has no result, and says why in one line."""

Mistake = Callable[[pytest.MonkeyPatch], None]
"""Breaks something of the project."""

SETTINGS = settings(
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # Smaller cases of what was found would take longer than finding it.
    phases=[Phase.explicit, Phase.generate],
)


@dataclass(frozen=True)
class RandomRuns:
    """Of a system. check: AssertionError for what was drawn if the run closes over a wrong result, or fails over a
    right one without a mistake. few: how many the ordinary suite draws. always: runs that it makes besides.
    mistaken: by name, runs with a mistake, which may not come out right. right, failed: of 200 runs more than so
    many do, or the tests would say little."""

    drawn: st.SearchStrategy[Any]
    check: Callable[[Any], Outcome]
    few: int
    always: Sequence[Any] = ()
    mistaken: Mapping[str, Any] = field(default_factory=dict)
    right: int = 0
    failed: int = 0

    def outcomes(self, count: int) -> Counter[Outcome]:
        found: Counter[Outcome] = Counter(map(self.check, self.always))

        @settings(SETTINGS, max_examples=count)
        @given(self.drawn)
        def runs(drawn: Any) -> None:
            found[self.check(drawn)] += 1

        runs()
        return found


@st.composite
def fault(
    draw: st.DrawFn,
    topology: Topology,
    kinds: Sequence[str],
    until_ms: int,
    *,
    change: st.SearchStrategy[dict[str, Any]],
    agents: Sequence[str] = (),
) -> dict[str, Any]:
    """One of these kinds, at a link, switch or agent of the network's. change: of a link, for link-change."""
    kind = draw(st.sampled_from(kinds))
    found = {"fault": kind, "at_ms": draw(st.integers(0, 10 * until_ms)) / 10}
    if kind == "switch-restart":
        return {**found, "switch": draw(st.sampled_from([each.name for each in topology.switches]))}
    if kind.startswith("agent"):
        return {**found, "agent": draw(st.sampled_from(agents))}
    link = draw(st.sampled_from(topology.links))
    found["link"] = [link.a.node, link.b.node]
    return {**found, "change": draw(change)} if kind == "link-change" else found


@dataclass(frozen=True)
class NicFrame:
    """A frame that a host's NIC took from its agent, or gave to it; time_ns None: sent at once."""

    host: str
    frame: bytes
    time_ns: int | None


@dataclass
class Nics:
    sent: list[NicFrame] = field(default_factory=list)
    received: list[NicFrame] = field(default_factory=list)


def watched_nics(topology: Topology, patch: pytest.MonkeyPatch) -> Nics:
    """What all NICs send and receive from now on, in the order of the calls."""
    hosts = {}
    for host in topology.hosts:
        switch = topology.attachment(host.name)
        hosts[switch.number, topology.port(switch.name, host.name)] = host.name
    nics = Nics()
    send, receive = HostInterface.send, HostInterface.receive

    def watch_send(self: HostInterface, frames: Any, lengths: Any = None, times_ns: Any = None) -> int:
        rows = np.ascontiguousarray(frames).view(np.uint8).reshape(len(frames), -1)
        nics.sent += _frames(hosts[self.device_id, self.port], rows, lengths, times_ns)
        return send(self, frames, lengths, times_ns)

    def watch_receive(self: HostInterface) -> Any:
        buffer, lengths = receive(self)
        nics.received += _frames(hosts[self.device_id, self.port], buffer[: len(lengths)], lengths, self.times_ns)
        return buffer, lengths

    patch.setattr(HostInterface, "send", watch_send)
    patch.setattr(HostInterface, "receive", watch_receive)
    return nics


def _frames(host: str, rows: Any, lengths: Any, times_ns: Any) -> list[NicFrame]:
    return [
        NicFrame(
            host,
            row[: None if lengths is None else int(lengths[place])].tobytes(),
            None if times_ns is None else int(times_ns[place]),
        )
        for place, row in enumerate(rows)
    ]
