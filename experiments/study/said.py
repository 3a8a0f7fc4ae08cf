"""What ran, for people: the network, and what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradbed.experiments.configuration.point import PointConfiguration
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition.expansion import with_values
from gradbed.experiments.system import System
from gradbed.experiments.tables.words import path_words, short_names
from gradbed.topo.words import drawing, link_words

CLOCKS = {"real": "in Mininet, in real time", "virtual": "on the virtual clock"}
IN_THE_NETWORK = ("clock", "topology.kind", "topology.link")
"""What `network_words` says."""


def network_words(configuration: PointConfiguration) -> str:
    """ "fat-tree:4 on the virtual clock: 16 hosts --16-- 8 edge; links: 100 Mbit/s, 50 us" """
    topology = configuration.topology.build(Scale())
    models = {link_words(link.model): None for link in topology.links}
    return f"{topology.name} {CLOCKS[configuration.clock]}: {drawing(topology)}; links: {' or '.join(models)}"


def chosen_words(system: System[Any], configuration: PointConfiguration) -> str:
    """What is otherwise than `gradbed run NAME` has it, beside the network: "exchange ring, rounds 2"; or nothing."""
    usual = system.configuration.model_validate(with_values({}, system.defaults))
    defaults = dict(_leaves(usual.model_dump(mode="json")))
    return ", ".join(
        f"{path_words(path)} {short_names([value])[0]}"
        for path, value in _leaves(configuration.model_dump(mode="json"))
        if not path.startswith(IN_THE_NETWORK) and value != defaults.get(path) and value not in (None, "", [], {})
    )


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
