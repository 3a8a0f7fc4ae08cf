"""BMv2 JSON as a whole: what BMv2's loader insists on, and where things come from in the source."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.compiler import compile_p4
from tests.unit.compiler.programs import HEAD, compile_text, control

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((ROOT / "tests" / "p4" / "programs").glob("*.p4")) + sorted((ROOT / "p4src").glob("*.p4"))
LANES = 64
COPIES = ("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress", "resubmit", "recirculate")
STD = "inout standard_metadata_t std)"


def lanes_program() -> str:
    """The shape of aggregation.p4: a wide header and one action over all lanes, both made by macros."""
    rows = " ".join(f"X({row:X}{column:X})" for row in range(LANES // 16) for column in range(16))
    macros = f"#define EACH(X) {rows}\n#define FIELD(n) bit<32> lane_##n;\n"
    macros += "#define MERGE(n) sums.read(v, base + 0x##n); v = (v & keep) + (hdr.lanes.lane_##n & add);"
    macros += " sums.write(base + 0x##n, v); hdr.lanes.lane_##n = v;\n"
    types = "header lanes_t { EACH(FIELD) }\nstruct headers_t { lanes_t lanes; }\nstruct meta_t { bit<8> x; }\n"
    inner = (
        "control Slots(inout headers_t hdr) { register<bit<32>>(1024) sums; bit<32> base = 7; bit<32> keep = 5;"
        " bit<32> add = 3; action merge() { bit<32> v; EACH(MERGE) } table t { actions = { merge; }"
        " default_action = merge(); } apply { t.apply(); } }\n"
    )
    text = control("slots.apply(hdr);", "Slots() slots;", types=types, before=inner)
    text = text.replace("packet.extract(hdr.h);", "packet.extract(hdr.lanes);")
    text = text.replace("packet.emit(hdr.h); packet.emit(hdr.g);", "packet.emit(hdr.lanes);")
    return text.replace(HEAD, HEAD + macros)


@pytest.fixture(scope="module", params=sorted([path.name for path in PROGRAMS] + ["lanes"]))
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "lanes":
        return compile_text(lanes_program()).json
    return compile_p4(next(path for path in PROGRAMS if path.name == request.param)).json


def pipelines(document: dict[str, Any]) -> list[dict[str, Any]]:
    assert [item["name"] for item in document["pipelines"]] == ["ingress", "egress"]
    return list(document["pipelines"])


def test_identifiers_are_unique_in_their_kind(document: dict[str, Any]) -> None:
    def unique(items: list[dict[str, Any]], *keys: str) -> None:
        for key in keys:
            values = [item[key] for item in items]
            assert len(values) == len(set(values)), key

    for section in ("header_types", "headers", "header_stacks", "register_arrays", "counter_arrays", "meter_arrays"):
        unique(document[section], "id", "name")
    unique(document["actions"], "id")
    unique([table for item in pipelines(document) for table in item["tables"]], "id", "name")
    unique([node for item in pipelines(document) for node in item["conditionals"]], "id", "name")
    unique(document["parsers"][0]["parse_states"], "id", "name")


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    for pipeline in pipelines(document):
        names = {item["name"] for item in pipeline["tables"] + pipeline["conditionals"]} | {None}
        actions = {item["id"]: item for item in document["actions"]}
        assert pipeline["init_table"] in names
        for table in pipeline["tables"]:
            assert set(table["next_tables"].values()) <= names
            assert table["actions"] == [actions[number]["name"] for number in table["action_ids"]]
            if "__HIT__" in table["next_tables"]:
                assert set(table["next_tables"]) == {"__HIT__", "__MISS__"}
            else:
                assert set(table["next_tables"]) == set(table["actions"])
            if "default_entry" in table:
                entry = table["default_entry"]
                assert entry["action_id"] in table["action_ids"]
                assert len(entry["action_data"]) == len(actions[entry["action_id"]]["runtime_data"])
        for node in pipeline["conditionals"]:
            assert {node["true_next"], node["false_next"]} <= names


def test_copies_and_digests_name_lists_that_exist() -> None:
    """BMv2 looks every list up that an action names, also where the program gives none, and ends without it."""
    ingress = """
        clone(CloneType.I2E, 1);
        clone(CloneType.I2E, 2);
        clone3(CloneType.I2E, 3, { meta.x });
        clone_preserving_field_list(CloneType.I2E, 4, 7);
        resubmit_preserving_field_list(8);
        resubmit({ });
        resubmit(hdr.h);
        digest(1, { hdr.h.a });
        digest(1, hdr.g);"""
    egress = "clone(CloneType.E2E, 5); recirculate_preserving_field_list(9); recirculate({ hdr.h.a });"
    text = control(ingress).replace(
        "inout standard_metadata_t std) { apply { } }", f"{STD} {{ apply {{ {egress} }} }}", 1
    )
    document = compile_text(text).json
    lists = {item["id"]: item["elements"] for item in document["field_lists"]}
    learned = {item["id"] for item in document["learn_lists"]}
    named: dict[str, list[int]] = {}
    for action in document["actions"]:
        for primitive in action["primitives"]:
            if primitive["op"] in (*COPIES, "generate_digest"):
                number = int(primitive["parameters"][-1]["value"], 16)
                named.setdefault(primitive["op"], []).append(number)
    copies = [number for op in COPIES for number in named[op]]
    assert [len(named[op]) for op in COPIES] == [4, 1, 3, 2]
    assert set(copies) == set(lists) and 0 not in lists
    assert lists[copies[0]] == lists[copies[4]] == []
    assert len(learned) == 2 and set(named["generate_digest"]) == learned
    assert len({item["name"] for item in document["field_lists"]}) == len(lists)


def test_fields_exist(document: dict[str, Any]) -> None:
    types = {item["name"]: {field[0] for field in item["fields"]} for item in document["header_types"]}
    headers = {item["name"]: types[item["header_type"]] | {"$valid$"} for item in document["headers"]}
    seen = 0

    def check(value: Any) -> None:
        nonlocal seen
        if isinstance(value, dict):
            if value.get("type") == "field":
                header, name = value["value"]
                assert name in headers[header]
                seen += 1
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)

    check(document)
    assert seen > 2


def test_header_types_are_whole_bytes(document: dict[str, Any]) -> None:
    for header_type in document["header_types"]:
        assert sum(field[1] for field in header_type["fields"] if field[1] != "*") % 8 == 0


def test_p4_objects_say_where_they_come_from(document: dict[str, Any]) -> None:
    objects = [*document["register_arrays"], *document["counter_arrays"], *document["deparsers"]]
    objects += [table for item in pipelines(document) for table in item["tables"] if table["key"]]
    objects += [action for action in document["actions"] if action["runtime_data"]]
    objects += [primitive for action in document["actions"] for primitive in action["primitives"]][:200]
    placed = [item for item in objects if "source_info" in item]
    assert len(placed) > 0.8 * len(objects)
    for item in placed:
        info = item["source_info"]
        assert info["line"] >= 1 and info["column"] >= 0
        assert not info["filename"].startswith("/")


def test_version_and_program(document: dict[str, Any]) -> None:
    assert document["__meta__"]["version"] == [2, 23]
    assert document["program"].endswith(".p4")


def test_lanes_become_one_action() -> None:
    document = compile_text(lanes_program()).json
    merge = next(action for action in document["actions"] if action["name"] == "I.slots.merge")
    assert [primitive["op"] for primitive in merge["primitives"]] == [
        "register_read",
        "assign",
        "register_write",
        "assign",
    ] * LANES
    lanes = next(item for item in document["header_types"] if item["name"] == "lanes_t")
    assert lanes["fields"] == [[f"lane_{number:02X}", 32, False] for number in range(LANES)]


def test_positions_of_a_table_and_of_a_statement() -> None:
    text = control("t.apply();", "action a() { hdr.h.a = 1; }\ntable t { actions = { a; } default_action = a(); }")
    document = compile_text(text).json
    line = next(number for number, content in enumerate(text.splitlines(), 1) if content.startswith("table t"))
    (table,) = pipelines(document)[0]["tables"]
    assert table["source_info"] == {"filename": "test.p4", "line": line, "column": 6, "source_fragment": "t"}
    (primitive,) = document["actions"][0]["primitives"]
    assert primitive["source_info"]["source_fragment"] == "hdr.h.a = 1"


def test_the_same_program_gives_the_same_document(tmp_path: Path) -> None:
    """Generated code is cached by the content of the document: no folder and no order of hashing may show in it."""
    source = PROGRAMS[0]
    (tmp_path / source.name).write_text(source.read_text())
    assert compile_p4(tmp_path / source.name).json_text == compile_p4(source).json_text


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradbed.switch.compiler", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_command_writes_both_files(tmp_path: Path) -> None:
    (tmp_path / "p.p4").write_text(control("hdr.h.a = VALUE;"))
    output, info = tmp_path / "out.json", tmp_path / "out.txt"
    result = run_command(str(tmp_path / "p.p4"), "-o", str(output), "--p4runtime-files", str(info), "-D", "VALUE=300")
    assert result.returncode == 0
    assert "warning: 300 does not fit into bit<8>, it becomes 44" in result.stderr
    assert json.loads(output.read_text())["program"] == "p.p4"
    assert 'arch: "v1model"' in info.read_text()


def test_command_reports_errors_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "p.p4").write_text(control("hdr.h.a = VALUE;"))
    result = run_command(str(tmp_path / "p.p4"), "-o", str(tmp_path / "out.json"))
    assert (result.returncode, result.stdout) == (2, "")
    assert "error: 'VALUE' is not declared" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out.json").exists()
