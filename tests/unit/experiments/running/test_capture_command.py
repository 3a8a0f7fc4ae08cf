"""`capture` at the prompt: what the kernel lost meanwhile is told with the packets that the file has."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from gradbed.emulation.statistics import DataPlaneStatistics
from gradbed.experiments.prompt.traffic_commands import CaptureCommands
from gradbed.topo.generators import star


@dataclass
class Counted:
    """A network that has lost so many frames, of which 7 before anything was captured."""

    drops: int = 7

    def data_plane_statistics(self) -> DataPlaneStatistics:
        return DataPlaneStatistics(0, (), 100, self.drops, 0)

    def start_capture(self, *_: object) -> None: ...

    def stop_capture(self, file: Path) -> int:
        return 12


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        (0, ""),
        (1, "; the kernel lost 1 packet before the switches saw them"),
        (5, "; the kernel lost 5 packets before the switches saw them"),
    ],
)
def test_what_the_kernel_lost_is_told(lost: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    backend = Counted()
    prompt = CaptureCommands.__new__(CaptureCommands)
    prompt.__dict__.update(
        _captures={}, topology=star(2), runtime=SimpleNamespace(backend=backend), stdout=io.StringIO()
    )
    prompt.do_capture("h1")
    backend.drops += lost
    prompt.do_capture("stop")
    assert prompt.stdout.getvalue() == (
        f"h1: capturing to h1.pcapng\nh1: 12 packets in {tmp_path / 'h1.pcapng'}{words}\n"
    )
