"""gradbed exercise: starter code fails the hidden tests, a solution passes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import exercise
from switch.errors import UserError

SOLUTIONS = {
    "forward": [
        (
            "        // TODO: send",
            "        std.egress_spec = port;\n"
            "        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;\n"
            "        hdr.ethernet.dst_addr = dst_mac;\n"
            "        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;\n        // send",
        )
    ],
    "firewall": [
        (
            "        // TODO: UDP (protocol 17) has a header, too.\n        transition accept;\n    }",
            "        transition select(hdr.ipv4.protocol) {\n            17: parse_udp;\n"
            "            default: accept;\n        }\n    }\n    state parse_udp {\n"
            "        packet.extract(hdr.udp);\n        transition accept;\n    }",
        ),
        ("        // TODO: match the UDP destination port exactly.", "        key = { hdr.udp.dst_port: exact; }"),
        (
            "            // TODO: packets whose UDP destination port is blocked are dropped; others go on.",
            "            if (hdr.udp.isValid()) {\n                blocked.apply();\n            }",
        ),
    ],
    "count": [
        (
            "        // TODO: add one to seen[port by which the packet came in].",
            "        bit<32> number;\n        seen.read(number, (bit<32>) std.ingress_port);\n"
            "        seen.write((bit<32>) std.ingress_port, number + 1);",
        )
    ],
}


def solve(name: str, folder: Path) -> None:
    program = folder / f"{name}.p4"
    text = program.read_text()
    for gap, filled in SOLUTIONS[name]:
        assert text.count(gap) == 1
        text = text.replace(gap, filled)
    program.write_text(text)


def test_every_exercise_has_a_solution_here() -> None:
    assert exercise.names() == sorted(SOLUTIONS)


@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_starter_code_fails_and_a_solution_passes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / name
    assert exercise.start(name, folder) == 0
    assert not (folder / exercise.HIDDEN).exists(), "the tests are hidden"
    assert exercise.check(name, folder) == 1
    assert "FAILED" in capsys.readouterr().out
    solve(name, folder)
    assert exercise.check(name, folder) == 0, capsys.readouterr().out
    assert "FAILED" not in capsys.readouterr().out


def test_what_cannot_be_checked_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no exercise 'forwrad'; did you mean 'forward'"):
        exercise.check("forwrad", tmp_path)
    with pytest.raises(UserError, match=r"has no forward.p4"):
        exercise.check("forward", tmp_path)
    with pytest.raises(UserError, match="is there already"):
        exercise.start("forward", tmp_path)
