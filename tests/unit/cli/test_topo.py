"""gradbed topo: what it says is so, and what it writes can be read."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gradbed.cli.commands.topo import FORMS
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology
from tests.command import gradbed, run_well


def test_what_a_topology_has() -> None:
    said = run_well("topo", "show", "fat-tree:4", "--rate-mbps", 100).stdout
    assert "16 hosts, 20 switches (4 core, 8 aggregation, 8 edge), 48 links" in said
    assert "48 x 100 Mbit/s, 0 us" in said
    assert re.search(r"h1 and h[5-9], 6 links apart", said)


@pytest.mark.thorough
def test_a_file_is_taken_as_a_topology(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    run_well("topo", "export", "star:3", "--rate-mbps", 50, "--delay-us", 20, "--output", file)
    ran = run_well(
        *("run", "aggregation", "--clock", "virtual", "--topology", file, "--workers", 2),
        *("--workload", "synthetic", "--rounds", 1, "--output", tmp_path),
    )
    assert "bit-identical" in ran.stdout + ran.stderr


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_all_nodes(form: str) -> None:
    built = parse_topology("leaf-spine:2,2,1", LinkModel(rate_bps=10_000_000))
    text = FORMS[form](built)
    for node in (*built.hosts, *built.switches):
        assert re.search(rf"\b{node.name}\b", text)
    if form == "svg":
        assert ElementTree.fromstring(text).tag.endswith("svg")
    if form == "dot":
        edges = {frozenset(pair) for pair in re.findall(r"(\w+) -- (\w+)", text)}
        assert edges == {frozenset((link.a.node, link.b.node)) for link in built.links}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "star:3", "--format", "dto"), "did you mean 'dot'?"),
        (("export", "star:3", "--output", "/no/where"), "--output: /no/where: No such file or directory"),
        (("show", "ring.yaml"), "ring.yaml: it cannot be read: No such file or directory"),
        (("show", "rnig:3"), "unknown topology 'rnig:3'"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    outcome = gradbed("topo", *arguments)
    assert (outcome.returncode, len(outcome.stderr.splitlines())) == (2, 1), outcome.stderr
    assert message in outcome.stderr
