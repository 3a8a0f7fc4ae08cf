"""Random schedules of faults for a run: of every kind, at places of its network, at times of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from gradbed.experiments.configuration.faults import (
    AgentFault,
    AgentPause,
    ControllerRestart,
    Fault,
    LinkChange,
    LinkFault,
    SwitchRestart,
)
from gradbed.topo.graph import Topology

MOST = 6
"""Faults of a schedule; one and its mending count as one."""
LONGEST_MS = 2000
"""Agents stand still, and what goes stays away, at most so long: less than anybody's patience."""


@dataclass(frozen=True)
class Places:
    """Where faults may happen: links by their ends, switches, agents; and until when, in ms, a run without any has
    ended. anew: agents that were ended may begin anew."""

    links: Sequence[tuple[str, str]]
    switches: Sequence[str]
    agents: Sequence[str]
    until_ms: float
    anew: bool

    @classmethod
    def of(cls, topology: Topology, agents: Sequence[str], until_ms: float, anew: bool) -> Places:
        links = [(link.a.node, link.b.node) for link in topology.links]
        return cls(links, [switch.name for switch in topology.switches], agents, until_ms, anew)


CHANGES: st.SearchStrategy[Mapping[str, Any]] = st.one_of(
    st.builds(lambda loss: {"loss": loss}, st.sampled_from([0.01, 0.05, 0.1])),
    st.builds(lambda share: {"duplicate": share}, st.sampled_from([0.1, 0.5])),
    st.builds(lambda reorder: {"delay_us": 300, "jitter_us": 300, "reorder": reorder}, st.booleans()),
    st.just({"bit_error_rate": 5e-6}),
    st.builds(lambda rate_mbps: {"rate_mbps": rate_mbps}, st.sampled_from([10, 300])),
    st.just({"delay_us": 1000}),
    st.builds(lambda packets: {"queue_packets": packets}, st.integers(1, 4)),
)


def schedules(places: Places) -> st.SearchStrategy[tuple[Fault, ...]]:
    """Up to MOST faults, in the order of their times. They shrink to fewer and earlier ones that are mended soon."""
    at_ms = st.integers(0, int(10 * places.until_ms)).map(lambda tenths: tenths / 10)
    back_ms = st.one_of(st.sampled_from([0.1, 1, 5, 20, 100, LONGEST_MS]), st.none())
    link, agent = st.sampled_from(places.links), st.sampled_from(places.agents)
    kinds = st.one_of(
        st.builds(_cut, link, at_ms, back_ms),
        st.builds(_changed, link, CHANGES, at_ms),
        st.builds(_restarted, st.sampled_from(places.switches), at_ms),
        st.builds(_controller, st.sampled_from(["controller-restart", "controller-failover"]), at_ms),
        st.builds(_paused, agent, at_ms, st.sampled_from([1, 10, 100, LONGEST_MS])),
        st.builds(_stopped, agent, at_ms, back_ms if places.anew else st.none()),
    )
    return st.lists(kinds, max_size=MOST).map(_in_time)


def _in_time(groups: Sequence[tuple[Fault, ...]]) -> tuple[Fault, ...]:
    """Sorted; without what would happen to an agent that is not there, which a run refuses."""
    gone: set[str] = set()
    kept: list[Fault] = []
    for fault in sorted((fault for group in groups for fault in group), key=lambda fault: fault.at_ms):
        if isinstance(fault, AgentFault | AgentPause):
            if (fault.agent in gone) != (fault.fault == "agent-start"):
                continue
            if isinstance(fault, AgentFault):
                gone ^= {fault.agent}
        kept.append(fault)
    return tuple(kept)


def _cut(link: tuple[str, str], at_ms: float, back_ms: float | None) -> tuple[Fault, ...]:
    down = LinkFault(fault="link-down", link=link, at_ms=at_ms)
    return (
        (down,) if back_ms is None else (down, LinkFault(fault="link-up", link=link, at_ms=round(at_ms + back_ms, 1)))
    )


def _changed(link: tuple[str, str], change: Mapping[str, Any], at_ms: float) -> tuple[Fault, ...]:
    return (LinkChange.model_validate({"fault": "link-change", "link": link, "change": change, "at_ms": at_ms}),)


def _restarted(switch: str, at_ms: float) -> tuple[Fault, ...]:
    return (SwitchRestart(fault="switch-restart", switch=switch, at_ms=at_ms),)


def _controller(kind: Literal["controller-restart", "controller-failover"], at_ms: float) -> tuple[Fault, ...]:
    return (ControllerRestart(fault=kind, at_ms=at_ms),)


def _paused(agent: str, at_ms: float, for_ms: float) -> tuple[Fault, ...]:
    return (AgentPause(fault="agent-pause", agent=agent, for_ms=for_ms, at_ms=at_ms),)


def _stopped(agent: str, at_ms: float, back_ms: float | None) -> tuple[Fault, ...]:
    stop = AgentFault(fault="agent-stop", agent=agent, at_ms=at_ms)
    return (
        (stop,)
        if back_ms is None
        else (stop, AgentFault(fault="agent-start", agent=agent, at_ms=round(at_ms + back_ms, 1)))
    )


def text(fault: Fault) -> str:
    """As `--fault` takes it."""
    plain = fault.model_dump(exclude_none=True, exclude={"fault", "at_ms"})
    if isinstance(fault, AgentFault | AgentPause) and fault.job == 1:
        del plain["job"]
    change = plain.pop("change", {})
    link = plain.pop("link", None)
    name = "-".join(link) if link else plain.pop("switch", None) or plain.pop("agent", None)
    fields = "".join(f",{field}={_word(value)}" for field, value in {**plain, **change}.items())
    return f"{fault.fault}{f':{name}' if name else ''}{fields}@{fault.at_ms:.10g}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.10g}"
