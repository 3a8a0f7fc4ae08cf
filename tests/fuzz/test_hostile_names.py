"""BMv2 JSON whose names are C: what is generated is the same C, but for what stands inside of strings."""

from __future__ import annotations

import random
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen.layout import STANDARD_FIELDS
from gradbed.switch.codegen.program import generate
from tests.fuzz.sanitized import build_driver, run_driver
from tests.fuzz.sources import SOURCES, program_json

HOSTILE = (
    '"};__attribute__((constructor))static void f(void){abort();}//',
    "*/ abort(); /*",
    "\n#include </etc/passwd>\n",
    '\\"; abort(); "',
    "\\",
    "??/",
    "%s%n%n",
    "\x00",
    "\x7f\x1b[2J",
    "é\udcff",
    "a" * 5_000,
    "$(touch here)",
    "`id`",
    "..\\../../x",
)
_LITERAL = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
FRAMES = 2_000


def renamed(program: dict[str, Any], rng: random.Random, but: Collection[str] = ()) -> dict[str, Any]:
    """With hostile texts behind all names that a compiler or a person chose, and in what is said of the source.

    but: names that stay."""
    names = _declared(program).difference(but)
    new = {name: name + rng.choice(HOSTILE) for name in sorted(names)}

    def change(value: Any, key: str = "") -> Any:
        if key == "source_info":
            return {"filename": rng.choice(HOSTILE), "line": 1, "column": 1, "source_fragment": rng.choice(HOSTILE)}
        if isinstance(value, dict):
            return {
                new.get(inner, inner) if key == "next_tables" else inner: change(each, inner)
                for inner, each in value.items()
            }
        if isinstance(value, list):
            return [change(each) for each in value]
        return new.get(value, value) if isinstance(value, str) else value

    changed: dict[str, Any] = change({key: part for key, part in program.items() if key != "field_aliases"})
    return {**changed, "field_aliases": program.get("field_aliases", []), "program": rng.choice(HOSTILE)}


def _declared(program: dict[str, Any]) -> set[str]:
    """All that has a name, but what v1model or BMv2 knows by that, and metadata, of which aliases tell."""
    kinds = ("actions", "register_arrays", "counter_arrays", "meter_arrays", "calculations", "parse_vsets")
    found = {each["name"] for kind in kinds for each in program.get(kind, [])}
    found |= {header["name"] for header in program["headers"] if not header["metadata"]}
    for pipeline in program["pipelines"]:
        for part in ("tables", "conditionals", "action_profiles"):
            found |= {each["name"] for each in pipeline.get(part, [])}
    for parser in program["parsers"]:
        found |= {state["name"] for state in parser["parse_states"]}
    words = {"ingress", "egress", "parser", "deparser", "scalars", *STANDARD_FIELDS}
    return {name for name in found if not name.startswith("$")} - words


def code_of(text: str) -> str:
    """C without what its strings say, by a lexer's rules of strings alone."""
    return _LITERAL.sub('""', text)


@pytest.mark.commit_cases(6)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_names_are_nothing_but_strings(source: Path) -> None:
    program = program_json(source)
    wanted = code_of(generate(load_program(program)))
    for seed in range(3):
        hostile = renamed(program, random.Random(seed))
        made = generate(load_program(hostile))
        assert code_of(made) == wanted
        assert made.isascii() and not re.search(r"\?\?[=/'()!<>-]", made)


@pytest.mark.thorough
@pytest.mark.parametrize("source", SOURCES[:2], ids=lambda path: path.stem)
def test_hostile_names_under_sanitizers(source: Path, tmp_path: Path) -> None:
    program = program_json(source)
    # The driver prints counters by their names, each in a line.
    counters = {counter["name"] for counter in program.get("counter_arrays", [])}
    hostile = renamed(program, random.Random(1), counters)
    driver = build_driver(hostile, tmp_path)
    # Its frames are those of the program under its own names.
    run_driver(driver, hostile, 1, FRAMES, parser_of=program)
