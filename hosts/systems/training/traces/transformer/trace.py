"""Made transformers as traces: the graph of a stage is made once, and its ranks differ in groups and peers."""

from __future__ import annotations

from dataclasses import replace

from gradbed.hosts.systems.training.traces.graph import RankGraph, graph_of
from gradbed.hosts.systems.training.traces.trace import Trace
from gradbed.hosts.systems.training.traces.transformer import ranks
from gradbed.hosts.systems.training.traces.transformer.layers import Role
from gradbed.hosts.systems.training.traces.transformer.model import TransformerModel
from gradbed.hosts.systems.training.traces.transformer.ranks import Place, place_of, rank_at
from gradbed.hosts.systems.training.traces.transformer.stage import Neighbour, Stage

GROUPS = {
    Role.TENSOR: ranks.tensor_group,
    Role.DATA: ranks.data_group,
    Role.EXPERT: ranks.expert_group,
    Role.EXPERT_DATA: ranks.expert_data_group,
    Role.EMBEDDING: ranks.embedding_group,
}


class TransformerTrace(Trace):
    """Of a model; every rank's nodes follow from its numbers."""

    def __init__(self, model: TransformerModel) -> None:
        super().__init__()
        self.name = model.preset or "transformer"
        self.ranks = model.ranks
        self.model = model
        self._stages: dict[int, RankGraph] = {}

    def _read(self, rank: int) -> RankGraph:
        place = place_of(self.model, rank)
        if place.stage not in self._stages:
            self._stages[place.stage] = graph_of(Stage(self.model, place.stage).nodes())
        stage = self._stages[place.stage]
        return replace(
            stage,
            groups=tuple(self._group(Role(role), place) for (role,) in stage.groups),
            peers=tuple(self._peer(Neighbour(neighbour), place) for neighbour in stage.peers),
        )

    def _group(self, role: Role, place: Place) -> tuple[int, ...]:
        """Empty: all ranks."""
        group = GROUPS[role](self.model, place)
        return () if len(group) == self.ranks else group

    def _peer(self, neighbour: Neighbour, place: Place) -> int:
        step = 1 if neighbour is Neighbour.NEXT else -1
        return rank_at(self.model, replace(place, stage=place.stage + step))
