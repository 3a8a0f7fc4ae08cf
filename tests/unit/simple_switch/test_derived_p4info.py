"""P4Info made of BMv2 JSON, against the compiler's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i

from gradbed.switch.compiler import compile_p4
from gradbed.switch.simple_switch.derived_p4info import derived_p4info
from tests.unit.simple_switch.programs import everything, program_json

COUNTING = Path(__file__).parents[2] / "p4/stf/architecture/count_min_sketch.p4"
KINDS = ("tables", "counters", "direct_counters", "meters", "registers", "action_profiles", "value_sets", "actions")


def named(info: Any, kind: str) -> dict[str, Any]:
    return {item.preamble.name: item for item in getattr(info, kind)}


@pytest.mark.parametrize("kind", KINDS)
def test_objects_have_the_compilers_names_and_identifiers(kind: str) -> None:
    derived, real = named(derived_p4info(program_json()), kind), named(everything().p4info, kind)
    assert derived.keys() == real.keys()
    assert len(real) > 0
    for name, item in real.items():
        assert derived[name].preamble.id == item.preamble.id
        assert derived[name].preamble.alias == item.preamble.alias


def test_tables_are_described_alike() -> None:
    derived, real = named(derived_p4info(program_json()), "tables"), named(everything().p4info, "tables")
    for name, table in real.items():
        for field in ("size", "implementation_id", "direct_resource_ids", "idle_timeout_behavior"):
            assert getattr(derived[name], field) == getattr(table, field), (name, field)
        assert {r.id for r in derived[name].action_refs} == {r.id for r in table.action_refs}
        assert [(m.id, m.name, m.bitwidth) for m in derived[name].match_fields] == [
            (m.id, m.name, m.bitwidth) for m in table.match_fields
        ]
    # BMv2 JSON knows optional fields as ternary ones.
    kinds = [field.match_type for field in derived["In.rules"].match_fields]
    assert kinds == [p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.TERNARY]


def test_actions_and_arrays_are_described_alike() -> None:
    derived, real = derived_p4info(program_json()), everything().p4info
    for name, action in named(real, "actions").items():
        found = [(p.id, p.name, p.bitwidth) for p in named(derived, "actions")[name].params]
        assert found == [(p.id, p.name, p.bitwidth) for p in action.params]
    assert named(derived, "counters")["In.seen"].size == 8
    assert named(derived, "registers")["In.cells"].type_spec == named(real, "registers")["In.cells"].type_spec
    assert named(derived, "meters")["In.limits"].spec == named(real, "meters")["In.limits"].spec
    assert derived.action_profiles[0].with_selector


def test_externs_of_our_own_are_described_alike() -> None:
    compiled = compile_p4(COUNTING)
    assert derived_p4info(compiled.json).externs == compiled.p4info.externs


def test_what_is_not_bmv2_json() -> None:
    with pytest.raises(ValueError, match="pipelines"):
        derived_p4info({"pipelines": 3})
