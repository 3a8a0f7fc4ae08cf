"""Gradients in buckets, in the order in which the backward pass completes them.

As PyTorch's DistributedDataParallel: a bucket takes tensors until it has bucket_bytes (Li et al., "PyTorch
Distributed", VLDB 2020, section 3.2.3). Gradients of experts are reduced among other ranks, so they have their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gradbed.hosts.systems.training.traces.transformer.costs import Tensor
from gradbed.hosts.systems.training.traces.transformer.layers import Role
from gradbed.hosts.systems.training.traces.transformer.model import TransformerModel


@dataclass(frozen=True)
class Bucket:
    """values: of the gradient. computed: the computation that completes the last of them."""

    number: int
    role: Role
    group_size: int
    values: int
    computed: int

    @property
    def padded_values(self) -> int:
        """So that ranks have equal parts."""
        return -(-self.values // self.group_size) * self.group_size


@dataclass
class _Open:
    values: int = 0
    computed: int = 0


@dataclass
class Gradients:
    """Of one iteration. exchanged, buckets: nodes and what they exchange, in order."""

    model: TransformerModel
    exchanged: list[int] = field(default_factory=list)
    buckets: list[Bucket] = field(default_factory=list)
    _open: dict[Role, _Open] = field(default_factory=dict)
    _count: int = 0

    def add(self, tensor: Tensor, computed: int) -> Iterator[Bucket]:
        """The bucket that is full with this tensor, if one is."""
        role = Role.EXPERT_DATA if tensor.of_experts else Role.DATA
        bucket = self._open.setdefault(role, _Open())
        bucket.values += tensor.values
        bucket.computed = computed
        if bucket.values * self.model.gradient_value_bytes >= self.model.bucket_bytes:
            yield self._close(role)

    def rest(self) -> Iterator[Bucket]:
        """Those that are not full."""
        for role in [*self._open]:
            yield self._close(role)

    def _close(self, role: Role) -> Bucket:
        bucket = self._open.pop(role)
        size = self.model.dp // self.model.ep if role is Role.EXPERT_DATA else self.model.dp
        made = Bucket(self._count, role, size, bucket.values, bucket.computed)
        self._count += 1
        return made
