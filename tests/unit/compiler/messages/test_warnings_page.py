"""docs/warnings.md and the compiler name the same warnings, and the page's examples give them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradbed.switch.compiler.analysis import CATEGORIES
from tests.unit.compiler.programs import HEAD, compile_text, control

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "warnings.md").read_text()
SECTIONS = {
    name: (text, example)
    for name, text, example in re.findall(r"^## (\S+)\n\n([^\n]+)\n\n```p4\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
}


def test_the_page_lists_every_warning_that_the_compiler_knows() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == sorted(CATEGORIES)
    assert {name: text for name, (text, _) in SECTIONS.items()} == {
        name: f"{text[0].upper()}{text[1:]}." for name, text in CATEGORIES.items()
    }


def test_the_compiler_reports_every_warning_that_it_knows() -> None:
    sources = (path.read_text() for path in (ROOT / "switch" / "compiler").rglob("*.py"))
    assert {name for text in sources for name in re.findall(r'category="([^"]+)"', text)} == set(CATEGORIES)


@pytest.mark.parametrize("name", sorted(CATEGORIES))
def test_the_example_gives_the_warning(name: str) -> None:
    assert {item.category for item in compile_text(_program(SECTIONS[name][1])).warnings} == {name}


def _program(example: str) -> str:
    if example.startswith("#"):
        return control("").replace(HEAD, HEAD + example)
    if example.startswith("state"):
        head = "parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {"
        return control("", parser=f"\n{head}\n{example}\n}}\n")
    locals_, _, apply = example.partition("apply {")
    return control(apply.rpartition("}")[0], locals_)
