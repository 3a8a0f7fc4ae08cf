"""What is sampled while a phase runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.scale import Scale
from gradbed.topo.graph import Direction, Topology
from gradbed.topo.places import with_node_names


@dataclass(frozen=True)
class SampleOrder:
    """What is sampled, and how often, from when the agents begin.

    interval_us: emulated. links: directions; None: all of them. registers: switch and name of each.
    """

    interval_us: int
    links: Collection[Direction] | None = None
    registers: Sequence[tuple[str, str]] = ()


class SamplesSection(Section):
    """Samples, as part of a system's configuration."""

    interval_us: int | None = option(None, "Sample queues, links and registers so often.", name="sample_us", ge=1)
    links: tuple[str, ...] = option(
        (), "Of links SENDER-RECEIVER, such as e1-h1 (default: all).", name="sample_links"
    )
    registers: tuple[str, ...] = option(
        (), "Of registers NAME, or SWITCH:NAME of one switch.", name="sample_registers"
    )

    def order(self, topology: Topology, scale: Scale) -> SampleOrder | None:
        """None: nothing is asked for. UserError for links and switches that the topology does not have."""
        if self.interval_us is None:
            if self.links or self.registers:
                raise UserError("--sample-us: say how often samples are to be taken")
            return None
        return SampleOrder(
            max(1, scale.time_us(self.interval_us)),
            [_direction(name, topology) for name in self.links] or None,
            [pair for name in self.registers for pair in _registers(name, topology)],
        )


def _direction(name: str, topology: Topology) -> Direction:
    sender, separator, receiver = with_node_names(topology, name).partition("-")
    if not separator:
        raise UserError(f"--sample-links: {name!r} is no SENDER-RECEIVER such as e1-h1")
    topology.link(sender, receiver)
    return sender, receiver


def _registers(name: str, topology: Topology) -> list[tuple[str, str]]:
    switch, separator, register = name.rpartition(":")
    if separator:
        return [(topology.switch(switch).name, register)]
    return [(each.name, register) for each in topology.switches]
