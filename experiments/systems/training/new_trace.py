"""`gradbed new trace`: traces of a transformer that is spread over ranks, as files that ASTRA-sim replays, too."""

from __future__ import annotations

from pathlib import Path

from gradbed.hosts.systems.training.traces.chakra import write_trace
from gradbed.hosts.systems.training.traces.transformer import TransformerTrace
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel


class NewTrace(TransformerModel):
    """Make the execution traces (MLCommons Chakra) of a transformer on dp x tp x pp ranks: FOLDER/trace.RANK.et."""

    def make(self, folder: Path) -> str:
        trace = TransformerTrace(self)
        write_trace(trace, folder)
        nodes = sum(len(trace.nodes(rank)) for rank in range(trace.ranks))
        return f"{folder}/: trace.0.et to trace.{trace.ranks - 1}.et, {nodes:,} nodes"
