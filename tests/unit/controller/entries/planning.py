"""Plans of entries files that tests write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from gradbed.controller.entries.document import EntriesError
from gradbed.controller.entries.planner import EntriesPlanner, EntriesSettings
from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import shortest_routes
from gradbed.switch.program_cache import compiled_files
from gradbed.topo.generators import leaf_spine
from gradbed.topo.graph import Topology

SOURCE = Path(__file__).parent / "everything.p4"
TOPOLOGY = leaf_spine(2, 2, 2)
"""Spines s1, s2; leaves l1 with h1 and h2 on ports 1 and 2, l2 with h3 and h4; their ports 3 and 4 lead to spines."""


def settings(files: tuple[Path, ...], own: Mapping[str, Path], topology: Topology = TOPOLOGY) -> EntriesSettings:
    return EntriesSettings(
        programs={"everything": compiled_files(SOURCE, {}).p4info},
        switches={switch.name: "everything" for switch in topology.switches},
        files=files,
        switch_files=dict(own),
    )


class Written:
    """Files in a folder, and what comes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def plan(self, text: str, name: str = "entries.yaml", topology: Topology = TOPOLOGY) -> Plan:
        """Of one file for all switches."""
        file = self.folder / name
        file.write_text(dedent(text))
        return EntriesPlanner(settings((file,), {}, topology)).plan(topology, shortest_routes(topology))

    def own_plan(self, text: str, name: str, switch: str = "l1") -> Plan:
        """Of one file for one switch."""
        file = self.folder / name
        file.write_text(dedent(text))
        return EntriesPlanner(settings((), {switch: file})).plan(TOPOLOGY, shortest_routes(TOPOLOGY))

    def mistake(self, text: str, name: str = "entries.yaml") -> str:
        """The message, without the folder."""
        with pytest.raises(EntriesError) as caught:
            self.plan(text, name)
        message = str(caught.value)
        assert "\n" not in message and caught.value.prefix == ""
        return message.replace(f"{self.folder}/", "")
