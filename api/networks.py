"""Networks that are up, on either clock: their switches' tables, registers and counters, packets at hosts, links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError
from gradbed.common.problems import in_words
from gradbed.live_hosts import Host
from gradbed.live_switches import Switch
from gradbed.programs import Program, as_program
from gradbed.topologies import Topology

if TYPE_CHECKING:
    import pandas

    from gradbed.controller.southbound.interface import Message
    from gradbed.experiments.sessions.session import NetworkSession


class Members(dict[str, Any]):
    """Hosts or switches by name; an unknown name raises UserError."""

    def __init__(self, kind: str, found: Mapping[str, Any]) -> None:
        super().__init__(found)
        self._kind = kind

    def __missing__(self, name: str) -> Any:
        from gradbed.common.errors import suggestion

        raise UserError(f"the network has no {self._kind} {name!r}{suggestion(name, list(self))}")


class Link:
    """A link between two nodes, both directions."""

    def __init__(self, session: NetworkSession, a: str, b: str) -> None:
        self._session = session
        self.a, self.b = a, b

    def down(self) -> None:
        """Cut the link: packets on it are lost, and the ports at its switches go down."""
        self._session.backend.set_link_up(self.a, self.b, False)

    def up(self) -> None:
        """Bring the link up again."""
        self._session.backend.set_link_up(self.a, self.b, True)

    def change(self, *, rate_mbps: float | None = None, **fields: Any) -> None:
        """Change the link from now on.

        Args:
            rate_mbps: The rate.
            **fields: delay_us, loss, duplicate, queue_packets, jitter_us, reorder.
        """
        from gradbed.common.errors import suggestion

        known = asdict(self._session.backend.link_model(self.a, self.b))
        for name in fields:
            if name not in known:
                raise UserError(f"a link has no {name!r}{suggestion(name, ['rate_mbps', *known])}")
        if rate_mbps is not None:
            fields["rate_bps"] = round(rate_mbps * 1e6)
        self._session.backend.change_link(self.a, self.b, **fields)

    def __repr__(self) -> str:
        return f"<Link {self.a}-{self.b}>"


class Network:
    """A network that is up. You are its controller: nothing changes tables but you, whatever happens to links.

    Attributes:
        hosts: By name, such as net.hosts["h1"].
        switches: By name, such as net.switches["s1"].
        topology: Hosts, switches and links as values, with addresses and ports.
    """

    def __init__(self, session: NetworkSession, topology: Topology) -> None:
        self._session = session
        self.topology = topology.graph
        self.hosts: Mapping[str, Host] = Members(
            "host", {host.name: Host(session, self.topology, host.name) for host in self.topology.hosts}
        )
        self.switches: Mapping[str, Switch] = Members(
            "switch", {switch.name: Switch(session, switch.name) for switch in self.topology.switches}
        )

    def link(self, a: str, b: str) -> Link:
        """Return the link between two nodes. UserError if there is none."""
        self.topology.link(a, b)
        return Link(self._session, a, b)

    @property
    def links(self) -> pandas.DataFrame:
        """A row for each direction of each link: from, to, packets, bytes, queue_drops, losses, queued, ..."""
        import pandas

        rows = pandas.DataFrame([asdict(row) for row in self._session.backend.link_statistics()])
        return rows.rename(columns={"from_node": "from", "to_node": "to"})

    @property
    def now_us(self) -> int:
        """Microseconds since the network is up."""
        return self._session.now_us()

    def wait(self, duration_us: int) -> None:
        """Let time go on for so long. On the virtual clock nothing happens but in this, `settle` and `receive`."""
        self._session.wait(duration_us)

    def settle(self, timeout_s: float = 2.0) -> bool:
        """Let time go on until no packet is on its way any more; False if some are after timeout_s."""
        return self._session.backend.quiesce(timeout_s)

    def messages(self) -> list[tuple[str, Message]]:
        """Return what switches have sent to their controller since the last call.

        Each is the switch's name and a Digest (name, entries) or a PacketIn (payload, metadata).
        """
        return self._session.messages()

    def __repr__(self) -> str:
        return f"<Network {self.topology.name}: {len(self.hosts)} hosts, {len(self.switches)} switches>"


@contextmanager
def up(
    topology: Topology | str | Path,
    program: Program | str | Path | None = None,
    *,
    clock: str = "real",
    seed: int = 1,
    switch: str = "gradbed",
    links: str = "memory",
) -> Iterator[Network]:
    """Bring up a network whose switches run a P4 program, for as long as the `with` block lasts.

    Args:
        topology: A `Topology`, or what `--topology` takes.
        program: For every switch, with its entries; None: what the topology's file names.
        clock: "real": Mininet in namespaces of its own, as root; "virtual": in this process, exact, any user, and
            hosts are nothing but their packets.
        seed: Of losses and whatever else is random.
        switch: "gradbed", or "bmv2" where it is installed (real clock).
        links: Between switches, on the real clock: "memory", or "veth" to capture on.

    Raises:
        UserError: Something is wrong, in one line; for programs and entries with FILE:LINE:COLUMN.

    Example:
        >>> with gb.up(gb.star(2), "my.p4", clock="virtual") as net:
        ...     net.switches["s1"].tables["routes"].insert({"hdr.ipv4.dst_addr": "10.0.0.1"}, "forward", {"port": 1})
        ...     net.hosts["h2"].send(IP(dst="10.0.0.1") / UDP())
        ...     packet = net.hosts["h1"].receive()
    """
    found = topology if isinstance(topology, Topology) else Topology(str(topology))
    given = None if program is None else as_program(program)
    order = {
        "values": _values(found, clock, switch, links),
        "program": None if given is None else Path(given.path).absolute(),
        "entries": () if given is None else given.files,
        "macros": {} if given is None else {name: str(value) for name, value in given.macros.items()},
        "seed": seed,
    }
    if clock == "real":
        from gradbed.experiments.sessions.remote import open_session

        with open_session(order) as session:
            yield Network(session, found)
    else:
        from gradbed.common.resources import scratch_folder
        from gradbed.experiments.sessions.virtual import open_session_of

        with scratch_folder() as folder, open_session_of(order, folder) as session:
            yield Network(session, found)


def virtual(topology: Topology | str | Path, program: Program | str | Path | None = None, **options: Any) -> Any:
    """Bring up a network on the virtual clock: for tests in this process, without root, reproducible."""
    return up(topology, program, clock="virtual", **options)


def _values(topology: Topology, clock: str, switch: str, links: str) -> dict[str, Any]:
    """Return a checked configuration of gradbed.experiments.custom_program. UserError."""
    from pydantic import ValidationError

    from gradbed.experiments.custom_program import CustomProgramConfiguration

    values = {
        "topology": topology.section,
        "clock": clock,
        "program": {"model": switch},
        "switches": {"links": links},
    }
    try:
        CustomProgramConfiguration.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = {"program": "switch", "switches": "links"}.get(str(first["loc"][0]), str(first["loc"][0]))
        raise UserError(f"{name}: {in_words(first)}, got {first['input']!r}") from None
    return values
