"""A plan that is asked for again is not made again, unless it would be another."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradbed.controller.entries import planner
from gradbed.controller.entries.planner import EntriesPlanner
from gradbed.controller.entries.sections import Reader
from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import Routes, shortest_routes
from gradbed.topo.generators import leaf_spine
from gradbed.topo.graph import Topology
from tests.unit.controller.entries.planning import TOPOLOGY, settings

ROUTES = """
tables:
  routes:
    - routes: shortest
      match: {hdr.ipv4.dst_addr: $dst_ip}
      action: forward
      params: {port: $port, dst_mac: $next_mac}
"""
DROP = """
tables:
  routes:
    - default_action: drop
"""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The switches for which files are read."""
    found: list[str] = []
    real = Reader.read

    def counted(self: Reader, *arguments: object, **more: object) -> None:
        found.append(self.switch.name)
        real(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Reader, "read", counted)
    monkeypatch.setattr(planner, "_latest", [])
    return found


def plan(file: Path, topology: Topology = TOPOLOGY, routes: Routes | None = None, **own: Path) -> Plan:
    """As each part of a run does: with a planner of its own."""
    made = settings((file,), own, topology)
    return EntriesPlanner(made).plan(topology, routes or shortest_routes(topology))


def test_the_same_is_planned_once(tmp_path: Path, read: list[str]) -> None:
    file = tmp_path / "entries.yaml"
    file.write_text(ROUTES)
    first = plan(file)
    assert sorted(read) == ["l1", "l2", "s1", "s2"] and len(first["l1"].entries) == 4
    again = plan(file, leaf_spine(2, 2, 2))
    assert again is first and len(read) == 4


@pytest.mark.parametrize(
    "what", ["file", "text", "topology", "routes", "own file", "text of the own file", "program"]
)
def test_what_differs_is_planned(what: str, tmp_path: Path, read: list[str]) -> None:
    file, other, own = (tmp_path / name for name in ("entries.yaml", "other.yaml", "own.yaml"))
    for each in (file, other, own):
        each.write_text(ROUTES)
    usual = settings((file,), {"l1": own} if what == "text of the own file" else {})
    topology, routes = TOPOLOGY, shortest_routes(TOPOLOGY)
    first = EntriesPlanner(usual).plan(topology, routes)
    changed = usual
    if what == "file":
        changed = settings((other,), {})
    elif what == "text":
        file.write_text(DROP)
    elif what == "topology":
        topology = leaf_spine(2, 2, 1)
    elif what == "routes":
        left = tuple(link for link in TOPOLOGY.links if {link.a.node, link.b.node} != {"l1", "s1"})
        routes = shortest_routes(TOPOLOGY.model_copy(update={"links": left}))
    elif what == "own file":
        changed = settings((file,), {"l1": own})
    elif what == "text of the own file":
        own.write_text(DROP)
    else:
        copied = tmp_path / "copy.p4info.txt"
        copied.write_bytes(next(iter(usual.programs.values())).read_bytes())
        changed = usual.model_copy(update={"programs": {"everything": copied}})
    before = len(read)
    second = EntriesPlanner(changed).plan(topology, routes)
    assert len(read) > before and second is not first
    assert (second != first) is (what not in ("file", "own file", "program"))
    if what == "text":
        assert [len(second["l1"].entries), len(second["l1"].defaults)] == [0, 1]


def test_functions_are_asked_each_time(tmp_path: Path, read: list[str]) -> None:
    count, file = tmp_path / "count", tmp_path / "entries.py"
    file.write_text(
        dedent(
            f"""
            from pathlib import Path
            def entries(topology, p4info):
                count = Path({str(count)!r})
                count.write_text(count.read_text() + "x" if count.exists() else "x")
                return {{"tables": {{"routes": [{{"default_action": "drop"}}]}}}}
            """
        )
    )
    assert plan(file) == plan(file)
    assert count.read_text() == "xx"
