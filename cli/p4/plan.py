"""gradbed p4 plan: what switches would hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plan(
    program: Annotated[Path, typer.Argument(help="A P4_16 program for v1model.")],
    entries: Annotated[list[Path] | None, typer.Argument(help="Files of entries (docs/entries.md).")] = None,
    topology: Annotated[
        str, typer.Option(help="Such as leaf-spine:2,2,2, or the path of a topology.json, p4app.json or network.py.")
    ] = "leaf-spine:2,2,2",
    switch: Annotated[str | None, typer.Option(help="This switch alone.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, which p4 trace and p4 coverage take.")] = False,
) -> int:
    """Show what entries put into the switches of a network; nothing runs. A mistake is one line with its place."""
    from gradbed.controller.entries.planner import EntriesPlanner
    from gradbed.controller.entries.settings import EntriesSettings
    from gradbed.controller.planning.plan import Plan
    from gradbed.controller.planning.routing import shortest_routes
    from gradbed.controller.planning.text import plan_text
    from gradbed.experiments.own_program import own_network
    from gradbed.topo.files import topology_file
    from gradbed.topo.registry import parse_topology

    network = parse_topology(topology)
    settings = own_network(network, program, entries or [], file=topology_file(topology)).settings
    assert isinstance(settings, EntriesSettings)
    made = EntriesPlanner(settings).plan(network, shortest_routes(network))
    if switch is not None:
        made = Plan(switches={network.switch(switch).name: made[switch]})
    print(made.to_json() if as_json else plan_text(made))
    return 0
