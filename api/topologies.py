"""Networks as values: shapes by their sizes, files, and graphs of networkx."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.files import kept_text

if TYPE_CHECKING:
    import networkx

    from gradbed.topo.graph import Topology as Graph


@dataclass(frozen=True)
class Topology:
    """Hosts, switches and links, as the section `topology` of a study has them.

    Made by `fat_tree`, `leaf_spine`, `star` and so on, by `topology` of a word or a file, or by `from_networkx`.

    Attributes:
        kind: The network as `--topology` takes it, such as "leaf-spine:2,2,4", or the path of a file.
        link: What every link does that does not say it itself: rate_mbps (100), delay_us (50), loss, duplicate,
            queue_packets (1000), jitter_us, reorder.
        tiers: The same for some classes of links, by name: "host", or the tiers of its two switches ("leaf-spine").
        addressing: "l3" (hosts send to their gateways) or "l2" (all hosts are of one subnet); None: the kind's own.
    """

    kind: str
    link: Mapping[str, Any] = field(default_factory=dict)
    tiers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    addressing: str | None = None

    def __post_init__(self) -> None:
        self.graph  # noqa: B018  # what is wrong is said where it is written

    def with_links(self, tier: str | None = None, **link: Any) -> Topology:
        """Return the same network with other links.

        Args:
            tier: A class of links, "host" or "leaf-spine", say; None: every link that has no more to say itself.
            **link: Fields of `link`, such as rate_mbps=10 or loss=0.01.

        Raises:
            UserError: There is no such field or tier, or the value cannot be.
        """
        if tier is None:
            return replace(self, link={**self.link, **link})
        return replace(self, tiers={**self.tiers, tier: {**self.tiers.get(tier, {}), **link}})

    @property
    def section(self) -> dict[str, Any]:
        """The section `topology` of a study."""
        found: dict[str, Any] = {"kind": self.kind, "link": dict(self.link)}
        if self.tiers:
            found["tiers"] = {name: dict(fields) for name, fields in self.tiers.items()}
        if self.addressing is not None:
            found["addressing"] = self.addressing
        return found

    @property
    def graph(self) -> Graph:
        """Hosts, switches and links as values, with addresses and ports."""
        from pydantic import ValidationError

        from gradbed.experiments.configuration.sections import AddressedTopologySection
        from gradbed.experiments.scale import Scale

        try:
            return AddressedTopologySection.model_validate(self.section).build(Scale())
        except ValidationError as error:
            raise UserError(f"topology: {first_problem(error)}") from None

    @property
    def networkx(self) -> networkx.Graph:
        """A graph of networkx. Nodes have `kind` ("host" or "switch") and `tier`, edges `link`."""
        return self.graph.graph.copy()

    @property
    def hosts(self) -> list[str]:
        """Names."""
        return [host.name for host in self.graph.hosts]

    @property
    def switches(self) -> list[str]:
        """Names."""
        return [switch.name for switch in self.graph.switches]

    def __repr__(self) -> str:
        graph = self.graph
        return f"<Topology {graph.name}: {len(graph.hosts)} hosts, {len(graph.switches)} switches>"


def topology(kind: str | Path, **link: Any) -> Topology:
    """Return the network that a word or a file describes.

    Args:
        kind: As `--topology` takes it: "fat-tree:4", or a file (docs/topologies.md).
        **link: What links do that do not say it themselves, such as rate_mbps=10.
    """
    return Topology(str(Path(kind).absolute()) if isinstance(kind, Path) else kind, link)


def fat_tree(k: int, **link: Any) -> Topology:
    """Return a fat-tree of switches with k ports, and k**3 / 4 hosts."""
    return Topology(f"fat-tree:{k}", link)


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, **link: Any) -> Topology:
    """Return a leaf-spine network: every leaf is linked to every spine, and hosts to leaves."""
    return Topology(f"leaf-spine:{leaves},{spines},{hosts_per_leaf}", link)


def star(hosts: int, **link: Any) -> Topology:
    """Return one switch, s1, with hosts h1, h2, ..."""
    return Topology(f"star:{hosts}", link)


def dragonfly(groups: int, routers: int, hosts_per_router: int, **link: Any) -> Topology:
    """Return a dragonfly: groups of routers, all linked within, and to each other group."""
    return Topology(f"dragonfly:{groups},{routers},{hosts_per_router}", link)


def torus(x: int, y: int, z: int, **link: Any) -> Topology:
    """Return a torus: switches in a grid whose ends meet, one host each."""
    return Topology(f"torus:{x},{y},{z}", link)


def bcube(n: int, k: int, **link: Any) -> Topology:
    """Return BCube(n, k): hosts with k + 1 ports each."""
    return Topology(f"bcube:{n},{k}", link)


def from_networkx(graph: networkx.Graph, **link: Any) -> Topology:
    """Return the network of a graph.

    Args:
        graph: Nodes with kind="host" are hosts, the others switches; without any hosts, every switch gets one. Nodes
            may have tier, ip and mac, edges rate_mbps, delay_us, jitter_us, loss, duplicate and queue_packets.
        **link: What links do that do not say it themselves.

    Raises:
        UserError: The graph is no network: two hosts are linked, say.
    """
    import networkx

    try:
        lines = list(networkx.generate_graphml(graph))
    except (networkx.NetworkXError, KeyError) as error:
        raise UserError(f"the graph cannot be written down: {error}") from None
    return Topology(str(kept_text("topologies", "\n".join(lines), ".graphml")), link)
