"""What a stage of the pipeline does in an iteration, the same for all of its ranks: layers, schedule, gradients.

Groups and peers are roles here; transformer/trace.py puts the ranks in their place.
"""

from __future__ import annotations

from enum import IntEnum

from gradbed.hosts.systems.training.execution import Kind, Node, Operation
from gradbed.hosts.systems.training.traces.transformer import costs
from gradbed.hosts.systems.training.traces.transformer.costs import Tensor
from gradbed.hosts.systems.training.traces.transformer.gradients import Bucket, Gradients
from gradbed.hosts.systems.training.traces.transformer.layers import Chain, Role, backward_half, forward_half, halves
from gradbed.hosts.systems.training.traces.transformer.model import TransformerModel
from gradbed.hosts.systems.training.traces.transformer.pipeline import Pass, passes


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

    def nodes(self) -> list[Node]:
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
            chain.collective("embedding forward", *self._embedded(), Role.TENSOR)
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
        chain.compute("logits forward", costs.logits_flops(model))
        for part in ("maximum", "target", "sum"):
            # Of the loss, where words are spread over ranks; 4 bytes a token, as in Megatron-LM.
            chain.collective(f"loss {part}", Operation.ALL_REDUCE, 4 * model.tokens, Role.TENSOR)

    def _embedded(self) -> tuple[Operation, int]:
        """How the parts of embeddings, each of some of the words, become whole."""
        operation = Operation.REDUCE_SCATTER if self._model.sequence_parallel else Operation.ALL_REDUCE
        return operation, costs.activation_bytes(self._model)

    def _backward(self, each: Pass, gradients: Gradients | None) -> None:
        """gradients: takes in those that are complete; None: there are more micro-batches to come."""
        chain, model = self._chain, self._model
        if self._last:
            chain.compute("logits backward", 2 * costs.logits_flops(model))
            if model.pp > 1:
                self._complete(gradients, [costs.words(model)])
            self._complete(gradients, [costs.final_norm(model)])
            chain.collective("logits backward", *self._embedded(), Role.TENSOR)
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
            self._complete(gradients, reversed(costs.embedding_tensors(model)))
        else:
            self._send(each, Neighbour.PREVIOUS)

    def _complete(self, gradients: Gradients | None, tensors: object) -> None:
        if gradients is None:
            return
        for tensor in tensors:  # type: ignore[attr-defined]
            assert isinstance(tensor, Tensor)
            for bucket in gradients.add(tensor, self._chain.computed):
                self._exchange(bucket, gradients)

    def _exchange(self, bucket: Bucket, gradients: Gradients) -> None:
        """All that a bucket waits for is computed, and exchanges go one after the other, as in one stream."""
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
            size = costs.words(model).values * model.gradient_value_bytes
            waits.append(
                chain.beside(
                    "words of both ends",
                    Kind.COLLECTIVE,
                    (chain.last, *gradients.exchanged[-1:]),
                    operation=Operation.ALL_REDUCE,
                    size_bytes=size,
                    group=(Role.EMBEDDING,),
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
        """Between stages; with sequence parallelism each tensor parallel rank has its part."""
        whole = costs.activation_bytes(self._model)
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
