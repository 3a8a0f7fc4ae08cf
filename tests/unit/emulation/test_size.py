"""Large networks: what they will take is said before, and what cannot be is refused."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.emulation import size
from gradbed.emulation.size import Machine, announce, estimate, require_room
from gradbed.topo.registry import parse_topology

LARGE = Machine(memory_bytes=64_000_000_000, terminals=4096, descriptors=20_000)


def test_what_is_large_is_told_and_what_is_small_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "here", classmethod(lambda cls: LARGE))
    announce(parse_topology("fat-tree:4"))
    assert capsys.readouterr().err == ""
    announce(parse_topology("fat-tree:16"))
    said = capsys.readouterr().err
    assert said.startswith("gradbed: fat-tree:16: 1024 hosts, 320 switches with 327680 routes: about ")
    assert len(said.splitlines()) == 1


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    ("word", "machine", "reason"),
    [
        ("fat-tree:40", LARGE, "only 4096 pseudo-terminals are left"),
        (
            "fat-tree:40",
            Machine(LARGE.memory_bytes, 20_000, LARGE.descriptors),
            r"may open 20000 files \(ulimit -Hn\)",
        ),
        ("fat-tree:16", Machine(2_000_000_000, LARGE.terminals, LARGE.descriptors), r"2\.0 GB are free"),
    ],
)
def test_what_cannot_be_is_refused(word: str, machine: Machine, reason: str) -> None:
    with pytest.raises(UserError, match=rf"^{word} is too large for this machine \(.*\): .*{reason}.*a smaller one$"):
        require_room(parse_topology(word), machine)


def test_each_part_counts() -> None:
    small, wide = estimate(parse_topology("star:2")), estimate(parse_topology("star:100"))
    assert wide.routes == 100
    assert wide.time_s > small.time_s > size.BASE_S
    assert wide.memory_bytes > small.memory_bytes > size.BASE_BYTES


def test_this_machine_can_be_asked() -> None:
    here = Machine.here()
    assert here.memory_bytes > 0 and here.terminals > 0 and here.descriptors > 0
    assert require_room(parse_topology("star:2")).hosts == 2
