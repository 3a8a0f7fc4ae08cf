"""gradbed exercise: starter code fails the hidden tests, a solution passes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.commands import exercise
from common.errors import UserError

LEARN = [
    (
        "        // TODO: learn: the host that sent this packet is reached by the port at which it came in.",
        "        port_of.write((bit<32>) hdr.ethernet.src_addr[15:0], std.ingress_port);",
    ),
    (
        "        // TODO: read the port of the host that the packet is for.\n        bit<9> port = NO_PORT;",
        "        bit<9> port;\n        port_of.read(port, (bit<32>) hdr.ethernet.dst_addr[15:0]);",
    ),
    (
        "        // TODO: nothing goes back by the port at which it came in.",
        "        if (std.egress_port == std.ingress_port) {\n            mark_to_drop(std);\n        }",
    ),
]

SOLUTIONS = {
    "learn": LEARN,
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


BLOCK_53 = "  blocked: [{match: {dst_port: 53}, action: drop}]\n"

# Of each exercise: a change of its solution, and what is to be said of it.
WRONG = {
    "forward": {
        "std.egress_spec = port;->": "packets: a packet with a route: .*: port 2: no packet came",
        "std.egress_spec->std.egress_port": "arrives: .*; 100 packets were sent to a port that does not exist",
        "hdr.ipv4.ttl - 1->hdr.ipv4.ttl": "packets: .*differs in ipv4.ttl: 0x40 instead of 0x3f",
        "src_addr = hdr.ethernet.dst_addr->src_addr = dst_mac": "differs in ethernet.src_addr: 0x.*102 instead of 0x",
        "default_action = drop()->default_action = forward(3, 0)": "is dropped: a packet left by port 3",
    },
    "firewall": {
        "hdr.udp.dst_port: exact->hdr.udp.src_port: exact": "the blocked port 53 is dropped: ",
        "hdr.udp.isValid()->!hdr.udp.isValid()": "the blocked port 53 is dropped: a packet left by port 2",
        "blocked.apply()->": "there is no table blocked: there is MyIngress.routes .a table that is never applied",
        "17: parse_udp->18: parse_udp": "the blocked port 53 is dropped: a packet left by port 2",
    },
    "learn": {
        "src_addr[15:0], std.ingress_port->dst_addr[15:0], std.ingress_port": "nobody is known: .*: port 2: no",
        "port_of.read(port, (bit<32>) hdr.ethernet.dst_addr[15:0])->port = NO_PORT": "misdelivered 1..30, found 200",
        "mark_to_drop(std);->": "the answer by port 2 .* alone: port 1: the packet differs",
    },
    "count": {
        "number + 1->number + 2": "a packet by port 1: seen.1. is 1: register seen.1. is 2, should be == 1",
        "number + 1->1": "seen.1. is 3: register seen.1. is 1, should be == 3",
        "seen.read(number, (bit<32>) std.ingress_port->seen.read(number, 0": "seen.1. is 1, should be == 3",
        "seen.write((bit<32>) std.ingress_port->seen.write(2": "register:l1:seen.1. > 0, found 0",
    },
}


def edit(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text()
    for gap, filled in changes:
        assert text.count(gap) == 1, gap
        text = text.replace(gap, filled)
    file.write_text(text)


def solve(name: str, folder: Path) -> None:
    edit(folder / f"{name}.p4", *SOLUTIONS[name])
    if name == "firewall":
        edit(folder / "entries.yaml", ("tables:\n", f"tables:\n{BLOCK_53}"))


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


@pytest.mark.parametrize(
    ("name", "change", "message"), [(name, *pair) for name, pairs in WRONG.items() for pair in pairs.items()]
)
def test_what_is_wrong_is_told(
    name: str, change: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / name
    exercise.start(name, folder)
    solve(name, folder)
    right, _, wrong = change.partition("->")
    edit(folder / f"{name}.p4", (right, wrong))
    assert exercise.check(name, folder) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert any(re.search(message, line) for line in failed), failed


def test_entries_that_are_missing_or_wrong_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "firewall"
    exercise.start("firewall", folder)
    edit(folder / "firewall.p4", *SOLUTIONS["firewall"])
    assert exercise.check("firewall", folder) == 1
    assert "FAILED  3 entries yaml blocks port 53: expected loss == 1, found 0" in capsys.readouterr().out
    edit(folder / "entries.yaml", ("tables:\n", f"tables:\n{BLOCK_53.replace('drop', 'dorp')}"))
    assert exercise.check("firewall", folder) == 1
    said = capsys.readouterr().out
    assert "FAILED  2 other traffic arrives: entries.yaml:2:45: the P4 program has no action 'dorp'" in said


def test_what_cannot_be_checked_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no exercise 'forwrad'; did you mean 'forward'"):
        exercise.check("forwrad", tmp_path)
    with pytest.raises(UserError, match=r"has no forward.p4"):
        exercise.check("forward", tmp_path)
    with pytest.raises(UserError, match="is there already"):
        exercise.start("forward", tmp_path)
