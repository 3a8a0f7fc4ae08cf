"""gradbed topo: what a topology is, and the same as a file."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Kind = Annotated[str, typer.Argument(metavar="TOPOLOGY", help="fat-tree:4, or a file (docs/topologies.md).")]
Rate = Annotated[float | None, typer.Option("--rate-mbps", help="Rate of links that have none of their own.")]
Delay = Annotated[int, typer.Option("--delay-us", help="Delay of links that have none of their own.")]

app = typer.Typer(help="Show a topology, or write it as a file.", no_args_is_help=True)


@app.callback()
def topo() -> None:
    """Show a topology, or write it as a file."""


@app.command()
def show(kind: Kind, rate_mbps: Rate = None, delay_us: Delay = 0) -> int:
    """Say what a topology has: hosts, switches by tier, links, and how far hosts are from each other."""
    from gradbed.topo.drawing import describe_link, describe_tiers

    found = _topology(kind, rate_mbps, delay_us)
    tiers = ", ".join(f"{count} {tier}" for tier, count in Counter(each.tier for each in found.switches).items())
    print(
        f"{found.name}: {len(found.hosts)} hosts, {len(found.switches)} switches ({tiers}), {len(found.links)} links"
    )
    for model, count in Counter(describe_link(link.model) for link in found.links).items():
        print(f"{count} x {model}")
    print(describe_tiers(found))
    if found.labels:
        print("labels: " + ", ".join(f"{name} {label}" for name, label in found.labels))
    if len(found.hosts) > 1:
        apart, a, b = _farthest(found)
        print(f"farthest hosts: {a} and {b}, {apart} links apart")
    for switch, program in _programs(kind).items():
        print(f"{switch} runs {program}, says the file")
    return 0


@app.command()
def export(
    kind: Kind,
    form: Annotated[str, typer.Option("--format", help="yaml, graphml, dot (Graphviz) or svg.")] = "yaml",
    output: Annotated[Path | None, typer.Option("--output", help="The file; default: standard output.")] = None,
    rate_mbps: Rate = None,
    delay_us: Delay = 0,
) -> int:
    """Write a topology as a file: --topology takes the YAML and the GraphML again."""
    from gradbed.common.errors import UserError, suggestion

    if form not in FORMS:
        raise UserError(f"--format: one of {', '.join(FORMS)}, not {form!r}{suggestion(form, FORMS)}")
    text = FORMS[form](_topology(kind, rate_mbps, delay_us))
    if programs := dict.fromkeys(_programs(kind).values()):
        print(f"gradbed: the {form} does not say what switches run: {', '.join(programs)}", file=sys.stderr)
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--output: {output}: {error.strerror}") from None
    return 0


def _topology(kind: str, rate_mbps: float | None, delay_us: int) -> Any:
    from gradbed.common.errors import UserError
    from gradbed.topo.link import LinkModel
    from gradbed.topo.registry import parse_topology

    if rate_mbps is not None and not math.isfinite(rate_mbps):
        raise UserError(f"--rate-mbps: {rate_mbps} is no rate: give a number, or leave it away for unlimited links")
    return parse_topology(kind, LinkModel(None if rate_mbps is None else round(rate_mbps * 1e6), delay_us))


def _programs(kind: str) -> dict[str, str]:
    """Return the programs that a topology's file names, by switch; print a line where other files are missing."""
    from gradbed.common.errors import UserError
    from gradbed.topo.files import topology_file

    try:
        file = topology_file(kind)
    except UserError as error:
        print(f"gradbed: {error}", file=sys.stderr)
        return {}
    return {} if file is None else file.own_programs()


def _farthest(topology: Any) -> tuple[int, str, str]:
    """Return (links, host, host) for the first of the farthest pairs."""
    import networkx

    hosts = [host.name for host in topology.hosts]
    lengths = ((a, networkx.single_source_shortest_path_length(topology.graph, a)) for a in hosts)
    pairs = ((found[b], a, b) for a, found in lengths for b in hosts if b in found)
    return max(pairs, key=lambda pair: pair[0])


def _yaml(topology: Any) -> str:
    from gradbed.topo.files.own_form import as_yaml

    return as_yaml(topology)


def _graphml(topology: Any) -> str:
    from gradbed.topo.files.graphml import as_graphml

    return as_graphml(topology)


def _dot(topology: Any) -> str:
    """Draw with Graphviz: hosts are boxes, switches circles, and edges have their rates."""
    lines = [f'graph "{topology.name}" {{']
    lines += [f"  {host.name} [shape=box];" for host in topology.hosts]
    lines += [f"  {switch.name} [shape=circle];" for switch in topology.switches]
    for link in topology.links:
        rate = "" if link.model.rate_bps is None else f' [label="{link.model.rate_bps / 1e6:g} Mbit/s"]'
        lines.append(f"  {link.a.node} -- {link.b.node}{rate};")
    return "\n".join([*lines, "}"]) + "\n"


def _svg(topology: Any) -> str:
    """Draw the nodes where reports draw them (topo/drawing.py)."""
    import io

    import networkx

    from gradbed.experiments.plotting.style import COLOURS, figure
    from gradbed.topo.drawing import node_positions

    hosts = [host.name for host in topology.hosts]
    switches = [switch.name for switch in topology.switches]
    graph = topology.graph
    found = {node: (x, -y) for node, (x, y) in node_positions(topology).items()}
    width, height = (max(each) - min(each) + 1 for each in zip(*found.values(), strict=True))
    with figure(width_in=max(4.0, 0.45 * width), height_in=max(2.0, 0.45 * height)) as (made, [axes]):
        for nodes, shape, colour in ((hosts, "s", COLOURS[6]), (switches, "o", COLOURS[4])):
            networkx.draw_networkx_nodes(
                graph, found, nodes, node_shape=shape, node_color=colour, node_size=260, ax=axes
            )
        networkx.draw_networkx_edges(graph, found, ax=axes, width=0.8)
        networkx.draw_networkx_labels(graph, found, ax=axes, font_size=7)
        axes.set_axis_off()
        target = io.StringIO()
        made.savefig(target, format="svg")
    return target.getvalue()


FORMS: dict[str, Callable[[Any], str]] = {"yaml": _yaml, "graphml": _graphml, "dot": _dot, "svg": _svg}
