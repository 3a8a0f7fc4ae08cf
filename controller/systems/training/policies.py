"""How a switch chooses among next hops that are equally near: entries of p4src/include/training/balance.p4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import TableEntry

PolicyName = Literal["ecmp", "random-spraying", "round-robin-spraying", "least-loaded", "flowlets"]

MOST_CANDIDATES = 16
"""Of an entry in `candidates` (least_loaded.p4)."""

MOST_NEXT_HOPS = 255
"""A flowlet's choice has 8 bits (flowlets.p4); every policy keeps to it."""

_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
)


@dataclass(frozen=True)
class NextHop:
    """The port that leads to a neighbour, and the neighbour's MAC address."""

    port: int
    mac: int


@dataclass(frozen=True)
class Policy:
    """name: of the rule. seed: of this switch's hashes. flowlet_us: of a pause after which a flow chooses anew."""

    name: PolicyName
    seed: int
    flowlet_us: int

    def choice(self, number: int, next_hops: int) -> tuple[str, dict[str, int]]:
        """The action of a destination, and its parameters, that takes one of the set `number`."""
        params = {"next_hop_set": number, "next_hops": next_hops}
        match self.name:
            case "ecmp":
                return "ecmp", params | {"seed": self.seed}
            case "random-spraying":
                return "random_spraying", params
            case "round-robin-spraying":
                return "round_robin_spraying", params
            case "least-loaded":
                return "least_loaded", {"next_hop_set": number, "blocks": _blocks(next_hops)}
            case "flowlets":
                return "flowlets", params | {"seed": self.seed, "pause_us": self.flowlet_us}

    def set_entries(self, switch: str, number: int, next_hops: Sequence[NextHop]) -> Iterator[TableEntry]:
        """What the set `number` is made of."""
        if len(next_hops) > MOST_NEXT_HOPS:
            raise UserError(f"{switch} has {len(next_hops)} equally short ways, it can choose among {MOST_NEXT_HOPS}")
        if self.name != "least-loaded":
            for place, next_hop in enumerate(next_hops):
                yield _next_hop(number, place, next_hop)
            return
        blocks = _blocks(len(next_hops))
        for block in range(blocks):
            members = next_hops[block::blocks]
            for place, next_hop in enumerate(members):
                yield _next_hop(number, block * MOST_CANDIDATES + place, next_hop)
            ports = [member.port for member in members] + [0] * (MOST_CANDIDATES - len(members))
            yield TableEntry(
                table="candidates",
                match={"next_hop_set": number, "block": block},
                action="among",
                params=dict(zip(_ORDINALS, ports, strict=True)),
            )


def _blocks(next_hops: int) -> int:
    """Of how many candidates there have to be for so many; as good as equally large."""
    return -(-next_hops // MOST_CANDIDATES)


def _next_hop(number: int, place: int, next_hop: NextHop) -> TableEntry:
    return TableEntry(
        table="next_hops_of_sets",
        match={"next_hop_set": number, "next_hop": place},
        action="forward",
        params={"port": next_hop.port, "dst_mac": next_hop.mac},
    )
