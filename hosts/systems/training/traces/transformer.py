"""Made transformers as traces: the graph of a stage is made once, and its ranks differ in groups and peers."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Literal, NamedTuple

from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.graph import Kind, RankGraph, TraceNode, graph_of
from gradbed.hosts.systems.training.traces.trace import Trace
from gradbed.hosts.systems.training.traces.transformer_layers import (
    Bucket,
    Chain,
    Gradients,
    ParallelGroup,
    ParameterTensor,
    activation_bytes,
    backward_half,
    embedding_tensors,
    final_norm,
    forward_half,
    halves,
    logits_flops,
    words,
)
from gradbed.hosts.systems.training.traces.transformer_model import (
    ParallelPosition,
    TransformerModel,
    data_group,
    embedding_group,
    expert_data_group,
    expert_group,
    place_of,
    rank_at,
    tensor_group,
)

# ---- In which order a stage takes up the passes of micro-batches ----


class Pass(NamedTuple):
    """forward, or else backward."""

    forward: bool
    micro_batch: int


def passes(schedule: Literal["1f1b", "gpipe"], stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """gpipe: all forward, then all backward, the last first (Huang et al., NeurIPS 2019, figure 2c). 1f1b: forward
    until the pipeline is full, then one backward for one forward (Narayanan et al., SC 2021, figure 4)."""
    forward = [Pass(True, number) for number in range(micro_batches)]
    backward = [Pass(False, number) for number in range(micro_batches)]
    if schedule == "gpipe":
        return [*forward, *reversed(backward)]
    warm_up = min(stages - stage - 1, micro_batches)
    steady = [each for pair in zip(forward[warm_up:], backward, strict=False) for each in pair]
    return [*forward[:warm_up], *steady, *backward[micro_batches - warm_up :]]


# ---- What a stage does in an iteration, the same for all of its ranks; groups and peers are roles here ----


class Neighbour(IntEnum):
    """The peer of a send or receive: the same tensor and data parallel rank of another stage."""

    PREVIOUS = 0
    NEXT = 1


class Stage:
    """Makes the nodes of one stage."""

    def __init__(self, model: TransformerModel, stage: int) -> None:
        self._model = model
        self._stage = stage
        self._first = stage == 0
        self._last = stage == model.pp - 1
        self._chain = Chain(model)
        self._received: dict[Neighbour, int] = {}
        per_stage = model.layers // model.pp
        self._layers = range(stage * per_stage, (stage + 1) * per_stage)

    def nodes(self) -> list[TraceNode]:
        for iteration in range(self._model.iterations):
            self._iteration(f"iteration {iteration}, ")
        return self._chain.nodes

    def _iteration(self, where: str) -> None:
        model = self._model
        order = passes(model.schedule, self._stage, model.pp, model.micro_batches)
        gradients = Gradients(model)
        for place, each in enumerate(order):
            self._chain.where = f"{where}micro-batch {each.micro_batch}, "
            if each.forward:
                self._forward(each)
            else:
                self._backward(each, gradients if place == len(order) - 1 else None)
        self._chain.where = where
        self._update(gradients)

    def _forward(self, each: Pass) -> None:
        chain, model = self._chain, self._model
        if self._first:
            chain.compute("embedding forward", 0)
            chain.collective("embedding forward", *self._embedded(), ParallelGroup.TENSOR)
        else:
            self._receive(each, Neighbour.PREVIOUS)
        for layer in self._layers:
            for half in halves(model, layer):
                forward_half(chain, half)
        if not self._last:
            self._send(each, Neighbour.NEXT)
            return
        if model.sequence_parallel:
            chain.gather_activation("logits forward")
        chain.compute("logits forward", logits_flops(model))
        for part in ("maximum", "target", "sum"):
            # Of the loss, where words are spread over ranks; 4 bytes a token, as in Megatron-LM.
            chain.collective(f"loss {part}", Operation.ALL_REDUCE, 4 * model.tokens, ParallelGroup.TENSOR)

    def _embedded(self) -> tuple[Operation, int]:
        """Return how the parts of embeddings, each of some of the words, become whole."""
        operation = Operation.REDUCE_SCATTER if self._model.sequence_parallel else Operation.ALL_REDUCE
        return operation, activation_bytes(self._model)

    def _backward(self, each: Pass, gradients: Gradients | None) -> None:
        """gradients: takes in those that are complete; None: there are more micro-batches to come."""
        chain, model = self._chain, self._model
        if self._last:
            chain.compute("logits backward", 2 * logits_flops(model))
            if model.pp > 1:
                self._complete(gradients, [words(model)])
            self._complete(gradients, [final_norm(model)])
            chain.collective("logits backward", *self._embedded(), ParallelGroup.TENSOR)
        else:
            self._receive(each, Neighbour.NEXT)
        for layer in reversed(self._layers):
            for half in reversed(halves(model, layer)):
                backward_half(chain, half)
                self._complete(gradients, reversed(half.tensors))
        if self._first:
            if model.sequence_parallel:
                chain.gather_activation("embedding backward")
            chain.compute("embedding backward", 0)
            self._complete(gradients, reversed(embedding_tensors(model)))
        else:
            self._send(each, Neighbour.PREVIOUS)

    def _complete(self, gradients: Gradients | None, tensors: object) -> None:
        if gradients is None:
            return
        for tensor in tensors:  # type: ignore[attr-defined]
            assert isinstance(tensor, ParameterTensor)
            for bucket in gradients.add(tensor, self._chain.computed):
                self._exchange(bucket, gradients)

    def _exchange(self, bucket: Bucket, gradients: Gradients) -> None:
        """Exchange a bucket once all that it waits for is computed; exchanges go one after the other, as in one
        stream.
        """
        if bucket.group_size == 1:
            return
        zero = self._model.optimizer == "zero1"
        node = self._chain.beside(
            f"gradients {bucket.number}",
            Kind.COLLECTIVE,
            (bucket.computed, *gradients.exchanged[-1:]),
            operation=Operation.REDUCE_SCATTER if zero else Operation.ALL_REDUCE,
            size_bytes=(bucket.padded_values if zero else bucket.values) * self._model.gradient_value_bytes,
            group=(bucket.role,),
        )
        gradients.exchanged.append(node)
        gradients.buckets.append(bucket)

    def _update(self, gradients: Gradients) -> None:
        chain, model = self._chain, self._model
        for bucket in gradients.rest():
            self._exchange(bucket, gradients)
        waits = [*gradients.exchanged]
        if model.pp > 1 and (self._first or self._last):
            size = words(model).values * model.gradient_value_bytes
            waits.append(
                chain.beside(
                    "words of both ends",
                    Kind.COLLECTIVE,
                    (chain.last, *gradients.exchanged[-1:]),
                    operation=Operation.ALL_REDUCE,
                    size_bytes=size,
                    group=(ParallelGroup.EMBEDDING,),
                )
            )
        chain.wait_for(waits)
        chain.compute("optimizer", 0)
        if model.optimizer == "zero1":
            gathered = chain.last
            for bucket in gradients.buckets:
                gathered = chain.beside(
                    f"parameters {bucket.number}",
                    Kind.COLLECTIVE,
                    (gathered,),
                    operation=Operation.ALL_GATHER,
                    size_bytes=bucket.padded_values // bucket.group_size * model.bytes,
                    group=(bucket.role,),
                )
            chain.wait_for([gathered])

    def _transfer_bytes(self) -> int:
        """Return the bytes between stages; with sequence parallelism each tensor parallel rank has its part."""
        whole = activation_bytes(self._model)
        return whole // self._model.tp if self._model.sequence_parallel else whole

    def _send(self, each: Pass, to: Neighbour) -> None:
        what = "activations" if each.forward else "their gradients"
        self._chain.beside(
            f"send {what}",
            Kind.SEND,
            (self._chain.last,),
            size_bytes=self._transfer_bytes(),
            peer=to,
            tag=each.micro_batch,
        )

    def _receive(self, each: Pass, of: Neighbour) -> None:
        what = "activations" if each.forward else "their gradients"
        before = self._received.get(of)
        node = self._chain.beside(
            f"receive {what}",
            Kind.RECEIVE,
            () if before is None else (before,),
            size_bytes=self._transfer_bytes(),
            peer=of,
            tag=each.micro_batch,
        )
        self._received[of] = node
        self._chain.wait_for([node])


# ---- The trace, which puts the ranks in the place of roles ----


GROUPS = {
    ParallelGroup.TENSOR: tensor_group,
    ParallelGroup.DATA: data_group,
    ParallelGroup.EXPERT: expert_group,
    ParallelGroup.EXPERT_DATA: expert_data_group,
    ParallelGroup.EMBEDDING: embedding_group,
}


class TransformerTrace(Trace):
    """The trace of a model; every rank's nodes follow from its numbers."""

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
            groups=tuple(self._group(ParallelGroup(role), place) for (role,) in stage.groups),
            peers=tuple(self._peer(Neighbour(neighbour), place) for neighbour in stage.peers),
        )

    def _group(self, role: ParallelGroup, place: ParallelPosition) -> tuple[int, ...]:
        """Empty: all ranks."""
        group = GROUPS[role](self.model, place)
        return () if len(group) == self.ranks else group

    def _peer(self, neighbour: Neighbour, place: ParallelPosition) -> int:
        step = 1 if neighbour is Neighbour.NEXT else -1
        return rank_at(self.model, replace(place, stage=place.stage + step))
