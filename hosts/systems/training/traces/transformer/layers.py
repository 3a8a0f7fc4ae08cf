"""The two halves of a layer, attention and MLP, forward and backward, with what tensor and expert parallel ranks
exchange.

Shoeybi et al., "Megatron-LM", section 3: an all-reduce of the activations after each half forward, and one of their
gradients before each half backward. Korthikanti et al., "Reducing Activation Recomputation", section 4.2.2: with
sequence parallelism, an all-gather and a reduce-scatter in the place of each. Lepikhin et al., "GShard": an
all-to-all to the experts and one back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from gradbed.hosts.systems.training.execution import Kind, Node, Operation
from gradbed.hosts.systems.training.traces.transformer import costs
from gradbed.hosts.systems.training.traces.transformer.costs import Tensor
from gradbed.hosts.systems.training.traces.transformer.model import TransformerModel


class Role(IntEnum):
    """The group of a collective."""

    TENSOR = 0
    DATA = 1
    EXPERT = 2
    EXPERT_DATA = 3
    EMBEDDING = 4


class Chain:
    """The nodes of a rank: what it does one after the other, and what goes on beside that."""

    def __init__(self, model: TransformerModel) -> None:
        self.model = model
        self.nodes: list[Node] = []
        self.where = ""
        """Stands before the names of nodes."""
        self.computed = 0
        """The last computation."""
        self._waits: tuple[int, ...] = ()
        self._sizes = {Role.TENSOR: model.tp, Role.EXPERT: model.ep}

    @property
    def last(self) -> int:
        """Of what is done one after the other; it has to be there."""
        return self._waits[0]

    def beside(self, name: str, kind: Kind, after: Sequence[int], **what: Any) -> int:
        """A node that the others do not wait for."""
        number = len(self.nodes)
        self.nodes.append(Node(number, self.where + name, kind, tuple(dict.fromkeys(after)), **what))
        return number

    def wait_for(self, nodes: Sequence[int]) -> None:
        """Let the next node of the chain wait for these, too."""
        self._waits = (*self._waits, *nodes)

    def compute(self, name: str, flops: int) -> None:
        """flops: on this rank."""
        duration_ns = self.model.duration_ns(flops)
        self.computed = self.beside(name, Kind.COMPUTE, self._waits, duration_ns=duration_ns)
        self._waits = (self.computed,)

    def collective(self, name: str, operation: Operation, size_bytes: int, role: Role) -> None:
        """The next node waits for it. Nothing, where the group has one rank."""
        if self._sizes[role] > 1:
            what: dict[str, Any] = {"operation": operation, "size_bytes": size_bytes, "group": (role,)}
            self._waits = (self.beside(f"{name}, {operation.value}", Kind.COLLECTIVE, self._waits, **what),)

    def gather_activation(self, name: str) -> None:
        """Of sequence parallel ranks."""
        part = costs.activation_bytes(self.model) // self.model.tp
        self.collective(name, Operation.ALL_GATHER, part, Role.TENSOR)

    def sum_activation(self, name: str) -> None:
        """Of tensor parallel ranks; with sequence parallelism each keeps its part."""
        operation = Operation.REDUCE_SCATTER if self.model.sequence_parallel else Operation.ALL_REDUCE
        self.collective(name, operation, costs.activation_bytes(self.model), Role.TENSOR)

    def exchange_tokens(self, name: str) -> None:
        """With the experts of other ranks."""
        size = costs.activation_bytes(self.model) * self.model.top_k
        self.collective(name, Operation.ALL_TO_ALL, size, Role.EXPERT)


@dataclass(frozen=True)
class Half:
    """Of a layer. flops: forward. router_flops: of a layer of experts; None: it is none."""

    name: str
    flops: int
    tensors: tuple[Tensor, ...]
    router_flops: int | None = None


def halves(model: TransformerModel, layer: int) -> tuple[Half, Half]:
    return (
        Half(f"layer {layer} attention", costs.attention_flops(model), tuple(costs.attention_tensors(model))),
        Half(
            f"layer {layer} {'experts' if model.experts else 'MLP'}",
            costs.mlp_flops(model),
            tuple(costs.mlp_tensors(model)),
            costs.router_flops(model) if model.experts else None,
        ),
    )


def forward_half(chain: Chain, half: Half) -> None:
    name = f"{half.name} forward"
    if chain.model.sequence_parallel:
        chain.gather_activation(name)
    if half.router_flops is not None:
        chain.compute(f"{name}, router", half.router_flops)
        chain.exchange_tokens(f"{name}, dispatch")
    chain.compute(name, half.flops)
    if half.router_flops is not None:
        chain.exchange_tokens(f"{name}, combine")
    chain.sum_activation(name)


def backward_half(chain: Chain, half: Half) -> None:
    name = f"{half.name} backward"
    if chain.model.sequence_parallel:
        chain.gather_activation(name)
    if half.router_flops is not None:
        chain.exchange_tokens(f"{name}, combine")
    chain.compute(name, 2 * half.flops)
    if half.router_flops is not None:
        chain.exchange_tokens(f"{name}, dispatch")
        chain.compute(f"{name}, router", 2 * half.router_flops)
    chain.sum_activation(name)
