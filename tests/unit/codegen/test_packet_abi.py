"""The names in Python and the structs in C are the same, in the same order."""

from __future__ import annotations

import re

from gradbed.switch.codegen import layout
from gradbed.switch.runtime.library import RUNTIME_DIR
from gradbed.switch.state.abi import RECENTS

_HEADER = (RUNTIME_DIR / "program.h").read_text()


def _members(struct: str, type_name: str) -> tuple[str, ...]:
    body = re.search(rf"struct {struct} {{(.*?)}};", _HEADER, re.DOTALL)
    assert body is not None
    declarations = re.findall(rf"{type_name} ([^;]+);", body[1])
    return tuple(name.strip() for names in declarations for name in names.split(","))


def test_standard_metadata() -> None:
    assert _members("gb_standard_metadata", "uint64_t") == layout.STANDARD_FIELDS


def test_requests() -> None:
    assert _members("gb_requests", "uint8_t") == layout.REQUEST_FLAGS
    assert _members("gb_requests", "uint32_t") == layout.REQUEST_NUMBERS


def test_requests_as_traced() -> None:
    """trace.c puts requests into records one by one."""
    source = (RUNTIME_DIR / "trace.c").read_text()
    function = re.search(r"static void request_words\(.*?\n}", source, re.DOTALL)
    assert function is not None
    assert tuple(re.findall(r"r->(\w+)", function[0])) == layout.REQUEST_FIELDS


def test_recents() -> None:
    assert re.search(rf"#define GB_RECENTS {RECENTS}\n", _HEADER)
