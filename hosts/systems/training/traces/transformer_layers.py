"""What a rank's part of a transformer holds, computes and exchanges, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.graph import Kind, TraceNode
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel

# ---- Costs ----
#
# What a rank's part of a transformer holds and computes.
#
# Floating point operations as in Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
# Using Megatron-LM", SC 2021, appendix: a layer takes 24 b s h^2 + 4 b s^2 h forward (b sequences of s tokens, width
# h, MLP of 4 h), the words' logits 2 b s h V; backward is twice as much. Without attention that is 2 x parameters x
# tokens forward, and 4 x backward.


@dataclass(frozen=True)
class ParameterTensor:
    """Parameters whose gradient is complete at one time."""

    name: str
    values: int
    """Number of values on one rank."""
    of_experts: bool = False
    """Whether each expert parallel rank holds others."""


def attention_tensors(model: TransformerModel) -> list[ParameterTensor]:
    """Return the attention tensors of one layer on one rank, in the order of the forward pass."""
    h, tp = model.width, model.tp
    return [
        ParameterTensor("attention norm", 2 * h),
        ParameterTensor("query, key and value", 3 * (h * h + h) // tp),
        ParameterTensor("projection", h * h // tp + h),
    ]


def mlp_tensors(model: TransformerModel) -> list[ParameterTensor]:
    h, f, tp = model.width, model.feed_forward_width, model.tp
    norm = ParameterTensor("MLP norm", 2 * h)
    up, down = (h * f + f) // tp, f * h // tp + h
    if not model.experts:
        return [norm, ParameterTensor("MLP up", up), ParameterTensor("MLP down", down)]
    own = model.experts // model.ep
    return [
        norm,
        ParameterTensor("router", h * model.experts),
        ParameterTensor("experts up", own * up, of_experts=True),
        ParameterTensor("experts down", own * down, of_experts=True),
    ]


def embedding_tensors(model: TransformerModel) -> list[ParameterTensor]:
    """Return the embeddings of the first stage."""
    return [words(model), ParameterTensor("positions", model.sequence * model.width)]


def words(model: TransformerModel) -> ParameterTensor:
    """The words' embeddings, which the logits use again."""
    return ParameterTensor("words", model.padded_vocabulary // model.tp * model.width)


def final_norm(model: TransformerModel) -> ParameterTensor:
    return ParameterTensor("final norm", 2 * model.width)


def attention_flops(model: TransformerModel) -> int:
    """Return the floating point operations of one layer and micro-batch on one rank, forward."""
    t, h = model.tokens, model.width
    return (8 * t * h * h + 4 * t * model.sequence * h) // model.tp


def mlp_flops(model: TransformerModel) -> int:
    """Return the operations of the MLP, or of the experts that a rank holds if all are used alike."""
    used = model.top_k if model.experts else 1
    return 4 * model.tokens * model.width * model.feed_forward_width * used // model.tp


def router_flops(model: TransformerModel) -> int:
    return 2 * model.tokens * model.width * model.experts


def logits_flops(model: TransformerModel) -> int:
    return 2 * model.tokens * model.width * model.padded_vocabulary // model.tp


def activation_bytes(model: TransformerModel) -> int:
    """Return the bytes of a micro-batch between two layers, whole."""
    return model.tokens * model.width * model.bytes


# ---- Layers ----
#
# The two halves of a layer, attention and MLP, forward and backward, with what tensor and expert parallel ranks
# exchange.
#
# Shoeybi et al., "Megatron-LM", section 3: an all-reduce of the activations after each half forward, and one of their
# gradients before each half backward. Korthikanti et al., "Reducing Activation Recomputation", section 4.2.2: with
# sequence parallelism, an all-gather and a reduce-scatter in the place of each. Lepikhin et al., "GShard": an
# all-to-all to the experts and one back.


class ParallelGroup(IntEnum):
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
        self.nodes: list[TraceNode] = []
        self.where = ""
        """Stands before the names of nodes."""
        self.computed = 0
        """The last computation."""
        self._waits: tuple[int, ...] = ()
        self._sizes = {ParallelGroup.TENSOR: model.tp, ParallelGroup.EXPERT: model.ep}

    @property
    def last(self) -> int:
        """Return the last of what is done one after the other; it has to be there."""
        return self._waits[0]

    def beside(self, name: str, kind: Kind, after: Sequence[int], **what: Any) -> int:
        """A node that the others do not wait for."""
        number = len(self.nodes)
        self.nodes.append(TraceNode(number, self.where + name, kind, tuple(dict.fromkeys(after)), **what))
        return number

    def wait_for(self, nodes: Sequence[int]) -> None:
        """Let the next node of the chain wait for these, too."""
        self._waits = (*self._waits, *nodes)

    def compute(self, name: str, flops: int) -> None:
        """flops: on this rank."""
        duration_ns = self.model.duration_ns(flops)
        self.computed = self.beside(name, Kind.COMPUTE, self._waits, duration_ns=duration_ns)
        self._waits = (self.computed,)

    def collective(self, name: str, operation: Operation, size_bytes: int, role: ParallelGroup) -> None:
        """The next node waits for it. Nothing, where the group has one rank."""
        if self._sizes[role] > 1:
            what: dict[str, Any] = {"operation": operation, "size_bytes": size_bytes, "group": (role,)}
            self._waits = (self.beside(f"{name}, {operation.value}", Kind.COLLECTIVE, self._waits, **what),)

    def gather_activation(self, name: str) -> None:
        """Gather the activation of sequence parallel ranks."""
        part = activation_bytes(self.model) // self.model.tp
        self.collective(name, Operation.ALL_GATHER, part, ParallelGroup.TENSOR)

    def sum_activation(self, name: str) -> None:
        """Sum the activation of tensor parallel ranks; with sequence parallelism each keeps its part."""
        operation = Operation.REDUCE_SCATTER if self.model.sequence_parallel else Operation.ALL_REDUCE
        self.collective(name, operation, activation_bytes(self.model), ParallelGroup.TENSOR)

    def exchange_tokens(self, name: str) -> None:
        """Exchange tokens with the experts of other ranks."""
        size = activation_bytes(self.model) * self.model.top_k
        self.collective(name, Operation.ALL_TO_ALL, size, ParallelGroup.EXPERT)


@dataclass(frozen=True)
class Half:
    """A half of a layer."""

    name: str
    flops: int
    """Operations of the forward pass."""
    tensors: tuple[ParameterTensor, ...]
    router_flops: int | None = None
    """Operations of the router of a layer of experts; None: it is no such layer."""


def halves(model: TransformerModel, layer: int) -> tuple[Half, Half]:
    return (
        Half(f"layer {layer} attention", attention_flops(model), tuple(attention_tensors(model))),
        Half(
            f"layer {layer} {'experts' if model.experts else 'MLP'}",
            mlp_flops(model),
            tuple(mlp_tensors(model)),
            router_flops(model) if model.experts else None,
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


# ---- Gradients ----
#
# Gradients in buckets, in the order in which the backward pass completes them.
#
# As PyTorch's DistributedDataParallel: a bucket takes tensors until it has bucket_bytes (Li et al., "PyTorch
# Distributed", VLDB 2020, section 3.2.3). Gradients of experts are reduced among other ranks, so they have their own.


@dataclass(frozen=True)
class Bucket:
    """A bucket of gradients that are exchanged together."""

    number: int
    role: ParallelGroup
    group_size: int
    values: int
    """Number of values of the gradient."""
    computed: int
    """Computation that completes the last of them."""

    @property
    def padded_values(self) -> int:
        """Return its values, padded so that ranks have equal parts."""
        return -(-self.values // self.group_size) * self.group_size


@dataclass
class _Open:
    values: int = 0
    computed: int = 0


@dataclass
class Gradients:
    """The gradients of one iteration."""

    model: TransformerModel
    exchanged: list[int] = field(default_factory=list)
    """Nodes and what they exchange, in order."""
    buckets: list[Bucket] = field(default_factory=list)
    """Nodes and what they exchange, in order."""
    _open: dict[ParallelGroup, _Open] = field(default_factory=dict)
    _count: int = 0

    def add(self, tensor: ParameterTensor, computed: int) -> Iterator[Bucket]:
        """The bucket that is full with this tensor, if one is."""
        role = ParallelGroup.EXPERT_DATA if tensor.of_experts else ParallelGroup.DATA
        bucket = self._open.setdefault(role, _Open())
        bucket.values += tensor.values
        bucket.computed = computed
        if bucket.values * self.model.gradient_value_bytes >= self.model.bucket_bytes:
            yield self._close(role)

    def rest(self) -> Iterator[Bucket]:
        """Yield the buckets that are not full."""
        for role in [*self._open]:
            yield self._close(role)

    def _close(self, role: ParallelGroup) -> Bucket:
        bucket = self._open.pop(role)
        size = self.model.dp // self.model.ep if role is ParallelGroup.EXPERT_DATA else self.model.dp
        made = Bucket(self._count, role, size, bucket.values, bucket.computed)
        self._count += 1
        return made
