"""A path in a folder that the user may not search: one clear line on standard error and exit status 2."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import ROOT
from tests.conftest import GradbedHere

pytestmark = pytest.mark.root

NOBODY = 65534
ROUTER = str(ROOT / "p4src" / "router.p4")
STF = str(ROOT / "tests" / "p4" / "stf" / "router.stf")

READ = (
    "run aggregation --clock virtual --topology {place}.yaml",
    "run {place}.yaml",
    "run workload {place}.p4",
    "run workload {router} --entries {place}.yaml",
    "run workload {router} --replay {place}.pcap",
    "run workload {router} --compare {place}.p4",
    "run training --trace {place}",
    "report {place}",
    "replay {place}",
    "topo show {place}/network.py",
    "p4 compile {place}.p4",
    "p4 stf {router} {place}.stf",
    "p4 stf {router} {stf} --bmv2-json {place}.json",
    "p4 trace {place}.p4 00",
    "p4 trace {router} --pcap {place}.pcap",
    "p4 coverage {router} --stf {place}.stf",
    "p4 plan {place}.p4 {place}.yaml",
    "p4 plan {router} {place}.yaml",
    "p4 shell --config {place}.p4info.txt,{place}.json",
    "exercise check {place}",
    "exercise hint {place}",
    "exercise grade {place}",
)
WRITTEN = (
    "demo ndn --output {place}",
    "run shuffle --output {place}",
    "p4 compile {router} --output {place}.json",
    "p4 compile {router} --output {home}/router.json --p4info {place}.txt",
    "p4 dissector -o {place}/gradbed.lua",
    "exercise start forward {place}",
    "exercise solution forward {place}",
    "new {place}",
    "new trace {place}",
)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the user, who is not root while the test runs."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        monkeypatch.setenv("HOME", folder)
        monkeypatch.setenv("XDG_CACHE_HOME", f"{folder}/.cache")
        os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that is open to root alone."""
    with tempfile.TemporaryDirectory() as folder:
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        yield Path(folder)


@pytest.mark.parametrize("line", READ + WRITTEN)
def test_a_folder_that_may_not_be_searched_is_one_line(
    closed: Path, home: Path, gradbed_here: GradbedHere, line: str
) -> None:
    words = line.format(place=closed / "inside", router=ROUTER, stf=STF, home=home).split()
    ended = gradbed_here(*words)
    assert ended.status == 2, ended
    assert ended.err.count("\n") == 1 and ended.err.startswith("gradbed: "), ended.err
    assert str(closed) in ended.err and "Permission denied" in ended.err
