"""What CONTRIBUTING says of a new topology and a new placement: three files, of which one is code, in a copy."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from gradbed.controller.systems.aggregation.placement.options import placement_names
from gradbed.topo.generators import GENERATORS
from gradbed.topo.registry import usage
from tests.command import ROOT, gradbed, run_well

CHAIN = '''

@topology_generator("chain")
def chain(switches: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return a chain of switches with one host each."""
    nodes = [make_switch(f"s{i + 1}", i + 1, "hub") for i in range(switches)]
    hosts = [make_host(f"h{i + 1}", f"10.0.{i}", 0, node) for i, node in enumerate(nodes)]
    ends = [*((host.name, 0, node.name, 1) for host, node in zip(hosts, nodes))]
    ends += [(a.name, 2, b.name, 3) for a, b in zip(nodes, nodes[1:])]
    links = [Link(a=Endpoint(node=a, port=p), b=Endpoint(node=b, port=q), model=model) for a, p, b, q in ends]
    return Topology(name=f"chain:{switches}", hosts=tuple(hosts), switches=tuple(nodes), links=tuple(links))
'''

LAST = '''

@placement_method("last")
def _last(solver: RateSolver, maximum: int, seed: int) -> tuple[str, ...]:
    """Return the switches with the highest numbers."""
    return solver.problem.candidates[::-1][:maximum]
'''


def files_of(heading: str) -> list[str]:
    """The files that a section's numbered steps name first."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"(?ms)^## {heading}\n(.*?)^## ", text)
    return re.findall(r"(?m)^\d\. `([^`]+)`", section)


def copy_with(file: str, addition: str, folder: Path) -> Path:
    """A copy of the package in which one file has more; PYTHONPATH of the folder that is returned finds it."""
    tree = folder / "tree"
    tree.mkdir()
    changed = {file.partition("/")[0], "api"}
    for each in ROOT.iterdir():
        if each.name in changed:
            shutil.copytree(each, tree / each.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif not each.name.startswith("."):
            os.symlink(each, tree / each.name)
    with (tree / file).open("a", encoding="utf-8") as code:
        code.write(addition)
    site = folder / "site"
    site.mkdir()
    os.symlink(tree / "api", site / "gradbed")
    return site


@pytest.mark.parametrize("heading", ["Add a topology", "Add a placement"])
def test_three_files(heading: str) -> None:
    files = files_of(heading)
    assert 1 <= len(files) <= 3
    assert all((ROOT / file).is_file() for file in files)
    assert sum(file.endswith(".py") and not file.startswith("tests/") for file in files) == 1


def test_a_topology_in_one_file_of_code(tmp_path: Path) -> None:
    site = copy_with(files_of("Add a topology")[0], CHAIN, tmp_path)
    shown = run_well("topo", "show", "chain:3", PYTHONPATH=site).stdout
    assert shown.startswith("chain:3: 3 hosts, 3 switches (3 hub), 5 links")
    assert " or chain:SWITCHES" in gradbed("topo", "show", "chian:3", PYTHONPATH=site).stderr
    assert "chain:SWITCHES" in "".join(run_well("run", "aggregation", "--help", PYTHONPATH=site).stdout.split())
    assert gradbed("topo", "show", "chain:3").returncode == 2


@pytest.mark.thorough
def test_a_placement_in_one_file_of_code(tmp_path: Path) -> None:
    site = copy_with(files_of("Add a placement")[0], LAST, tmp_path)
    run = ["run", "aggregation", "--clock", "virtual", "--topology", "leaf-spine:2,2,2", "--workers", "3"]
    run += [
        "--rounds",
        "2",
        "--workload",
        "synthetic",
        "--values",
        "700",
        "--placement",
        "last",
        "--programmable",
        "1",
    ]
    run_well(*run, "--output", tmp_path / "results", PYTHONPATH=site)
    refused = gradbed(*run, "--output", tmp_path / "results")
    assert refused.returncode == 2 and "--placement: must be one of 'shared-path', " in refused.stderr


def test_each_topology_and_placement_has_its_row() -> None:
    topologies = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")
    assert [word for word in GENERATORS if f"| `{usage(word)}` | " not in topologies] == []
    placements = (ROOT / "docs" / "placement.md").read_text(encoding="utf-8")
    rows = " ".join(line.split(" | ")[0] for line in placements.splitlines() if line.startswith("| `"))
    assert [name for name in placement_names() if f"`{name}`" not in rows] == []
