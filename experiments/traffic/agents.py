"""The agents of a traffic, one in every host, and the rates at which they send."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.configuration import Demands, Pair, TrafficSection, demands, read_matrix
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.traffic.config import EndpointConfig, TrafficStream
from gradbed.hosts.traffic.replay import Replay
from gradbed.hosts.traffic.schedule import mean_wire_bytes
from gradbed.topo.graph import Topology

# ---- Rates ----


DEFAULT_LOAD = 0.5


def pair_rates(section: TrafficSection, topology: Topology, scale: Scale, seed: int) -> dict[Pair, float]:
    """Return the rate of every pair that sends, in emulated bit/s.

    Args:
        topology: in emulated units.

    Raises:
        UserError: the traffic is not possible.
    """
    if section.matrix is not None:
        rates = {pair: 1e6 * mbps * scale.factor for pair, mbps in read_matrix(section.matrix, topology).items()}
        return rates if section.load is None else loaded(rates, topology, section.load)
    chosen = demands(section.pattern, topology, seed, section.within)
    return loaded(chosen, topology, DEFAULT_LOAD if section.load is None else section.load)


def loaded(weights: Demands, topology: Topology, load: float) -> dict[Pair, float]:
    """Return weights as bit/s such that the busiest direction of a host's link is offered `load` of its rate."""
    sent: dict[str, float] = defaultdict(float)
    received: dict[str, float] = defaultdict(float)
    for (sender, receiver), weight in weights.items():
        sent[sender] += weight
        received[receiver] += weight
    busiest = max(
        weight / link_rate_bps(topology, host) for each in (sent, received) for host, weight in each.items()
    )
    return {pair: weight * load / busiest for pair, weight in weights.items()}


def link_rate_bps(topology: Topology, host: str) -> float:
    """Return the rate of a host's link.

    Raises:
        UserError: it is unlimited, so that there is no load.
    """
    rate_bps = topology.link(host, topology.attachment(host).name).model.rate_bps
    if not rate_bps:
        raise UserError(f"the link of {host} has no rate, of which a load could be a part: give it one, or a matrix")
    return rate_bps


def shares(rates: Mapping[Pair, float], packets: int) -> dict[Pair, int]:
    """Distribute a number of packets over pairs by their rates, by the largest remainder method."""
    total = sum(rates.values())
    exact = {pair: packets * rate / total for pair, rate in rates.items()}
    found = {pair: int(share) for pair, share in exact.items()}
    rest = sorted(exact, key=lambda pair: found[pair] - exact[pair])[: packets - sum(found.values())]
    for pair in rest:
        found[pair] += 1
    return found


# ---- Agents ----


AGENT = "gradbed.hosts.traffic.agents:endpoint"
MODULE = "gradbed.hosts.traffic.agents"
"""Module of the agents, for NetworkSetup.preload."""

KEPT_PACKETS = 1 << 18
"""Number of packets that all hosts together keep (gradbed.hosts.traffic.config.EndpointConfig).

They are half a gigabyte of usual packets, half of what a network on the virtual clock has room for.
"""

NAME = "traffic of {}"
"""Name of an agent, by its host."""

Headers = Callable[[Pair, int], tuple[str, ...] | None]
"""Headers of the frames of a pair, one for each of its flows (gradbed.hosts.traffic.config.Stream.headers)."""


@dataclass(frozen=True)
class TrafficPlan:
    """Traffic of a trial: which host sends to which, at which rate."""

    specs: tuple[AgentSpec, ...]
    rates_bps: Mapping[Pair, float]
    """Emulated rate of each pair."""
    streams: Mapping[str, tuple[str, ...]]
    """Receivers of each sender, in the order of its streams."""
    sources: tuple[str, ...]
    """Hosts by their number in packets."""
    section: TrafficSection
    scale: Scale
    notes: tuple[str, ...] = ()
    """Ways in which the sent traffic differs from the requested one."""


def plan_traffic(
    section: TrafficSection,
    topology: Topology,
    scale: Scale,
    seed: int,
    *,
    job: int = 1,
    headers: Headers = lambda pair, flows: None,
    any_frame: bool = False,
    except_udp_ports: Mapping[str, int] | None = None,
    replay: Mapping[str, Replay] | None = None,
) -> TrafficPlan:
    """Plan the agents of a traffic.

    Every host takes part, since a packet may come to a host that does not expect it.

    Args:
        topology: in emulated units.
        headers: headers of frames in place of Ethernet, IPv4 and UDP.
        any_frame: whether receivers take in whatever comes.
        except_udp_ports: with any_frame, UDP port of each host that its agent leaves to others.
        replay: capture files that hosts send in place of the section's traffic.

    Raises:
        UserError: the traffic is not possible.
    """
    rates_bps = {} if replay else pair_rates(section, topology, scale, seed)
    most = None if section.packets is None or replay else shares(rates_bps, section.packets)
    names = tuple(host.name for host in topology.hosts)
    numbers = {name: number for number, name in enumerate(names)}
    sent: dict[str, list[Pair]] = {name: [] for name in names}
    for pair in rates_bps:
        if most is None or most[pair] > 0:
            sent[pair[0]].append(pair)
    specs, streams = [], {}
    for host, chosen in sent.items():
        streams[host] = tuple(receiver for _, receiver in chosen)
        rate_bps = topology.link(host, topology.attachment(host).name).model.rate_bps
        config = EndpointConfig(
            address=AgentAddress.of(topology.host(host)),
            source=numbers[host],
            streams=tuple(
                TrafficStream(
                    destination=AgentAddress.of(topology.host(pair[1])),
                    receiver=numbers[pair[1]],
                    rate_bps=rates_bps[pair],
                    flows=section.flows,
                    packets=None if most is None else most[pair],
                    dst_mac=topology.destination_mac(*pair),
                    headers=headers(pair, section.flows),
                )
                for pair in chosen
            ),
            arrivals=section.agent_arrivals(scale),
            sizes=section.agent_sizes,
            link_rate_bps=rate_bps or 1e9,
            warm_up_us=scale.time_us(1000 * section.warm_up_ms),
            duration_us=max(1, scale.time_us(1000 * section.duration_ms)) if most is None else None,
            seed=seed,
            kept_packets=max(1, KEPT_PACKETS // len(names)),
            any_frame=any_frame,
            except_udp_port=(except_udp_ports or {}).get(host),
            replay=(replay or {}).get(host),
        )
        specs.append(AgentSpec(host, AGENT, NAME.format(host), config, 0, job))
    return TrafficPlan(tuple(specs), rates_bps, streams, names, section, scale)


def sending_us(section: TrafficSection, topology: Topology, scale: Scale, seed: int) -> int:
    """Return the emulated time for which the traffic is sent; for a number of packets or flows, on average."""
    if section.packets is None:
        return scale.time_us(1000 * section.duration_ms)
    rates_bps = pair_rates(section, topology, scale, seed)
    return round(8e6 * section.packets * mean_wire_bytes(section.agent_sizes) / sum(rates_bps.values()))


def check_traffic(section: TrafficSection, topology: Topology) -> None:
    """Raise UserError for a traffic that is not possible.

    Args:
        topology: in nominal units.
    """
    pair_rates(section, topology, Scale(), seed=1)
