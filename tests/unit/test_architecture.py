"""Imports point one way: cli -> experiments -> controller, hosts, topo -> switch (docs/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAY_IMPORT = {
    "switch": set[str](),
    "topo": {"switch"},
    "controller": {"topo", "switch"},
    "hosts": {"topo", "switch"},
    "experiments": {"controller", "hosts", "topo", "switch"},
    "cli": {"experiments", "controller", "hosts", "topo", "switch"},
}

NEEDS_A_NETWORK = {"grpc", "finsy", "os_ken", "mininet", "pyroute2", "scapy", "socket", "subprocess", "ctypes"}


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_arrows_point_one_way(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in imports(path)
        if (top := name.split(".")[0]) in {*MAY_IMPORT, "tests"} and top not in {package, *MAY_IMPORT[package]}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "folder", ["controller/planning", "controller/systems/aggregation/placement", "hosts/learning"]
)
def test_pure_parts_touch_no_network(folder: str) -> None:
    own = folder.replace("/", ".")
    allowed = {"switch.errors", "switch.link", "topo.graph", "controller.systems.aggregation.designation"}
    shared = ("controller.planning",) if own.startswith("controller.systems.") else ()
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name in imports(path):
            assert name.split(".")[0] not in NEEDS_A_NETWORK, f"{path.relative_to(ROOT)} imports {name}"
            if name.split(".")[0] in MAY_IMPORT:
                assert name.startswith((own, *shared)) or name in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_the_readme_leads_to_every_page_of_the_documentation() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in sorted((ROOT / "docs").glob("*.md")) if f"](docs/{page.name})" not in readme] == []
