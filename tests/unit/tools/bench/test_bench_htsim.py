"""htsim beside the virtual clock, with a stand-in that says what htsim says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from tests.command import tool
from tools.bench.virtual import run
from tools.bench.virtual.run import run_bench_virtual
from tools.bench.virtual.simulators import HTSIM_VARIABLE, find_htsim, measure_htsim, microseconds
from tools.bench.virtual.workload import Permutation

PACKETS_PER_US = 3
STAND_IN = f"""#!{sys.executable} -I
import pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
pathlib.Path({{record!r}}).write_text(pathlib.Path(given["-tm"]).read_text())
print("Parsed args\\nLogging to /dev/null\\nLinkspeed set to", int(given["-linkspeed"]) // 1000, "Gbps")
end_us = int(given["-end"])
for _ in range(end_us * 10_000):
    pass
print("Starting simulation\\nDone")
print("New:", {PACKETS_PER_US} * end_us, "Rtx: 20 Bounced: 7")
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return made(tmp_path, monkeypatch, STAND_IN.format(record=str(tmp_path / "matrix")))


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    """In a folder as htsim's own, which the variable names."""
    program = folder / "sim" / "datacenter" / "htsim_ndp"
    program.parent.mkdir(parents=True)
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("GRADBED_HTSIM", str(folder))
    return program


def test_hops_are_counted_from_what_it_says_it_sent(stand_in: Path, tmp_path: Path) -> None:
    assert find_htsim() == stand_in
    measured = measure_htsim(stand_in, Permutation(4), 1)
    # The first quarter of its time is not counted.
    assert microseconds(Permutation(4), 1) == 400
    assert measured.hops == PACKETS_PER_US * 300 * 18
    assert measured.run_s > 0 and measured.memory_bytes > 1_000_000
    nodes, connections, *pairs = (tmp_path / "matrix").read_text().splitlines()
    assert (nodes, connections) == ("Nodes 16", "Connections 16")
    ends = [tuple(map(int, pair.split()[0].split("->"))) for pair in pairs]
    assert sorted(source for source, _ in ends) == sorted(to for _, to in ends) == list(range(16))
    # Of another pod each: four hosts are a pod.
    assert all(source // 4 != to // 4 for source, to in ends)


def test_the_time_grows_with_the_hops() -> None:
    # 16 hosts, a packet in 8.336 us each, 18 hops.
    assert microseconds(Permutation(4), 1_000_000) == int(1_000_000 / (16 * 18) * 8.336)


def test_its_numbers_stand_beside_ours(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "HOPS", 1000)
    monkeypatch.setattr(run, "HTSIM_HOPS", 1)
    monkeypatch.setattr(run, "ns3_version", lambda: None)
    assert run_bench_virtual([4], 1) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Its hops are data, ACK and pull packets, each on each of six links: 18 for a data packet" in said
    assert "htsim" in said


WRONG = {
    "no counts": ("#!/bin/sh\necho Starting simulation\n", "Starting simulation"),
    "other counts": ("#!/bin/sh\necho New: many Rtx: 0 Bounced: 0\n", "New: many"),
    "a failure": (
        "#!/bin/sh\necho New: 5 Rtx: 0 Bounced: 0\necho Connection matrix is wrong\nexit 255\n",
        "status 255",
    ),
    "nothing": ("#!/bin/sh\nkill -SEGV $$\n", "nothing"),
    "always the same": ("#!/bin/sh\necho New: 5 Rtx: 0 Bounced: 0\n", "not more than in a part"),
    "no program at all": ("#!/nowhere/sh\n", "cannot be run: No such file"),
}


@pytest.mark.parametrize(("text", "says"), WRONG.values(), ids=WRONG)
def test_what_is_no_htsim_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str) -> None:
    program = made(tmp_path, monkeypatch, text)
    with pytest.raises(UserError) as raised:
        measure_htsim(program, Permutation(2), 1)
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_a_build_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    ended = tool("bench", "virtual", "--sizes", "2", GRADBED_HTSIM=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"gradbed: GRADBED_HTSIM={tmp_path}: there is no program htsim_ndp")
    assert len(ended.stderr.strip().splitlines()) == 1


def test_without_the_variable_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HTSIM_VARIABLE, raising=False)
    assert find_htsim() is None
