"""What the compiler says of lists in loops, and of slices by width, that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.switch.compiler import compile_p4
from gradbed.switch.compiler.diagnostics import CompileError

PROGRAM = (Path(__file__).resolve().parents[2] / "p4" / "stf" / "language" / "lists.p4").read_text()

MISTAKES = {
    "hdr.list.given[0+:8];": {
        "hdr.list.given[9+:8];": "slice [16:9] is outside the bits of bit<16>",
        "hdr.list.given[0+:0];": "a slice has one bit or more, not 0",
        "hdr.list.given[0+:hdr.list.sum];": "the width of a slice",
        "hdr.list.given[0+:9];": "bit<9>",
    },
    "(bit<16> item in (list<bit<16>>) { 0x1000,": {
        "(bit<8> item in (list<bit<16>>) { 0x1000,": "expected bit<16>, but this is bit<8>",
        "(bit<16> item in (list<bit<16>>) { 8w1,": "bit<8>",
        "(bit<16> item in (tuple<bit<16>, bit<16>, bit<16>>) { 0x1000,": "a loop runs over a range, a list",
    },
}


@pytest.mark.parametrize(
    ("right", "wrong", "message"), [(right, *each) for right, some in MISTAKES.items() for each in some.items()]
)
def test_what_is_wrong_is_said(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    assert PROGRAM.count(right) == 1
    (tmp_path / "lists.p4").write_text(PROGRAM.replace(right, wrong))
    with pytest.raises(CompileError) as refused:
        compile_p4(tmp_path / "lists.p4")
    assert message in str(refused.value)
