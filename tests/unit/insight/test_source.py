"""Where parts of a program stand in its source: each site's line, looked up in the text by hand."""

from __future__ import annotations

from gradbed.switch.codegen.emit import probes as p
from tests.unit.insight.tracing import ROUTER, program


def test_every_kind_of_part_stands_on_its_line() -> None:
    built, sources = program(ROUTER)
    found: dict[type, set[str]] = {}
    for site in built.sites:
        source = sources.of(site)
        if source is not None:
            found.setdefault(type(site), set()).add(sources.line(source) or "")
    assert any(line.startswith("state ") for line in found[p.StateEntered])
    assert any(".extract(" in line for line in found[p.OperationDone])
    assert any(line.startswith("if (") for line in found[p.BranchTaken])
    assert any(line.startswith("table ") for line in found[p.TableApplied])
    assert found.keys() >= {p.CallMade, p.PrimitiveDone, p.TransitionTaken}
