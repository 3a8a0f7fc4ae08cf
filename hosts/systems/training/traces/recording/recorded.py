"""What `gradbed run torch --trace` recorded, as a trace."""

from __future__ import annotations

import json
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.traces.chakra.records import BrokenFile
from gradbed.hosts.systems.training.traces.chakra.writing import write_trace
from gradbed.hosts.systems.training.traces.checks import check_trace
from gradbed.hosts.systems.training.traces.graph import BrokenGraph, RankGraph, graph_of
from gradbed.hosts.systems.training.traces.recording.conversion import nodes_of
from gradbed.hosts.systems.training.traces.recording.operators import Operators
from gradbed.hosts.systems.training.traces.trace import Trace


class RecordedTrace(Trace):
    """Of a folder with operators.RANK.json and timeline.RANK.json of PyTorch, and ranks.RANK.json of the recorder
    (hosts/torch_hook/recorder.py)."""

    def __init__(self, folder: Path, ranks: int) -> None:
        super().__init__()
        self.name = str(folder)
        self.ranks = ranks
        self._folder = folder

    def place(self, rank: int) -> str:
        return f"{self._folder / f'operators.{rank}.json'}: rank {rank}"

    def _read(self, rank: int) -> RankGraph:
        try:
            about = json.loads((self._folder / f"ranks.{rank}.json").read_text(encoding="utf-8"))
            operators = Operators(self._folder / f"operators.{rank}.json", self._folder / f"timeline.{rank}.json")
            return graph_of(nodes_of(operators, self.ranks, tuple(about["data_parallel"])))
        except (OSError, BrokenFile, BrokenGraph) as error:
            raise UserError(f"{self.place(rank)}: {error}") from None


def convert_recording(recorded: Path, ranks: int, folder: Path) -> str:
    """Make a Chakra trace in `folder` of what was recorded; what was made, in words. UserError if ranks do not agree,
    as where one of them used PyTorch's distributed package in a way that is not known."""
    trace = RecordedTrace(recorded, ranks)
    check_trace(trace)
    write_trace(trace, folder)
    communications = sum(sum(1 for _ in trace.nodes(rank).communications()) for rank in range(ranks))
    nodes = sum(len(trace.nodes(rank)) for rank in range(ranks))
    return f"{folder}/: {ranks} ranks, {nodes:,} nodes, {communications:,} of them communications"
