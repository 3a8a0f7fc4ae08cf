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


@pytest.mark.parametrize(
    "room", ["collectives", "learning", "protocols", "systems", "torch_hook", "transport", "agents/context.py"]
)
def test_agents_know_time_and_network_by_their_context_alone(room: str) -> None:
    """hosts/agents/real_context.py is what asks the kernel, so that another clock can take its place."""
    path = ROOT / "hosts" / room
    for file in sorted(path.rglob("*.py")) or [path]:
        for name in imports(file):
            asks = name in {"time", "select", "selectors", "socket", "ctypes", "hosts.agents.real_context"}
            assert not asks, f"{file.relative_to(ROOT)} imports {name}"


def test_shared_rooms_of_hosts_know_no_system() -> None:
    rooms = [path for path in sorted((ROOT / "hosts").rglob("*.py")) if "systems" not in path.parts]
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path in rooms for name in imports(path) if "systems." in name]
    assert wrong == []


def test_the_readme_leads_to_every_page_of_the_documentation() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in sorted((ROOT / "docs").glob("*.md")) if f"](docs/{page.name})" not in readme] == []
