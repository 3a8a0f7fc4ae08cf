"""Which rank is where, and in which groups (TransformerModel says the order)."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.hosts.systems.training.traces.transformer.model import TransformerModel

Group = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Of a rank: which of its tensor and data parallel ranks it is, and its stage of the pipeline."""

    tensor: int
    data: int
    stage: int


def place_of(model: TransformerModel, rank: int) -> Place:
    return Place(rank % model.tp, rank // model.tp % model.dp, rank // (model.tp * model.dp))


def rank_at(model: TransformerModel, place: Place) -> int:
    return place.tensor + model.tp * (place.data + model.dp * place.stage)


def tensor_group(model: TransformerModel, place: Place) -> Group:
    return tuple(rank_at(model, Place(tensor, place.data, place.stage)) for tensor in range(model.tp))


def data_group(model: TransformerModel, place: Place) -> Group:
    return _of_data(model, place, range(model.dp))


def expert_group(model: TransformerModel, place: Place) -> Group:
    """Those who hold a layer's experts together."""
    first = place.data // model.ep * model.ep
    return _of_data(model, place, range(first, first + model.ep))


def expert_data_group(model: TransformerModel, place: Place) -> Group:
    """Those who hold the same experts."""
    return _of_data(model, place, range(place.data % model.ep, model.dp, model.ep))


def embedding_group(model: TransformerModel, place: Place) -> Group:
    """Those at both ends of the pipeline, who hold the same part of the words' embeddings."""
    ends = dict.fromkeys((0, model.pp - 1))
    return tuple(rank_at(model, Place(place.tensor, place.data, stage)) for stage in ends)


def _of_data(model: TransformerModel, place: Place, among: range) -> Group:
    return tuple(rank_at(model, Place(place.tensor, data, place.stage)) for data in among)
