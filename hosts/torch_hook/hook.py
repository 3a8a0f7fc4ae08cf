"""The hook itself: buckets in, futures of mean gradients out.

DistributedDataParallel hands over buckets of gradients one after the other as the backward pass gets to them, at
first in one partition and from the second pass on in another. A round of the network is the whole gradient, which
always has the same length: the buckets wait for the last one, and their futures become complete together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import distributed

from gradbed.common.errors import UserError
from gradbed.hosts.learning.quantise import TensorScales
from gradbed.hosts.torch_hook.session import Session


@dataclass(frozen=True)
class _Bucket:
    """A bucket that waits for its mean."""

    gradient: Any
    """Tensor, flat."""
    parameters: list[int]
    """Numbers of the parameters whose gradients it holds, in its order."""
    future: Any


class GradientMean:
    """The communication hook of one model."""

    def __init__(self, model: Any, session: Session) -> None:
        """model: a DistributedDataParallel. UserError for anything else, or without a parameter to train."""
        if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
            raise UserError(
                f"torch_hook.register takes a DistributedDataParallel model, not a {type(model).__name__}"
            )
        ranks = distributed.get_world_size()
        if ranks != session.workers:
            raise UserError(f"the process group has {ranks} ranks, the job {session.workers} workers")
        trained = [
            parameter
            for name, parameter in model.module.named_parameters()
            if parameter.requires_grad and name not in model.parameters_to_ignore
        ]
        if not trained:
            raise UserError("the model has no parameter that requires a gradient")
        self._model = model
        self._session = session
        self._numbers = {id(parameter): number for number, parameter in enumerate(trained)}
        sizes = [parameter.numel() for parameter in trained]
        self._scales = TensorScales(sizes, session.headroom_bits, session.exponent)
        self._waiting: list[_Bucket] = []

    def install(self) -> None:
        """Wait for all ranks, and take over the model's gradients."""
        self._session.open(self._scales.values)
        # Annotated functions must bear PyTorch's very types, as objects; those without are taken as they are.
        self._model.register_comm_hook(self, lambda state, bucket: state.take(bucket))

    def take(self, bucket: Any) -> Any:
        """A torch.futures.Future of the mean over all ranks of a distributed.GradBucket's flat gradient."""
        future = torch.futures.Future()
        numbers = [self._numbers[id(parameter)] for parameter in bucket.parameters()]
        self._waiting.append(_Bucket(bucket.buffer(), numbers, future))
        if bucket.is_last():
            buckets, self._waiting = self._waiting, []
            self._complete(buckets)
        return future

    def _complete(self, buckets: list[_Bucket]) -> None:
        flat = [_array_of(bucket.gradient) for bucket in buckets]
        order = [number for bucket in buckets for number in bucket.parameters]
        contribution = self._scales.quantised(order, np.concatenate(flat))
        total = self._session.all_reduce(contribution.values, contribution.clipped)
        mean = torch.from_numpy(self._scales.mean(order, total, self._session.workers))
        for bucket, part in zip(buckets, mean.split([len(values) for values in flat]), strict=True):
            bucket.future.set_result(part.to(bucket.gradient))


def _array_of(gradient: Any) -> Any:
    """A tensor as a NumPy array: float64 as it is, of other types the float32 that holds each value exactly."""
    kind = torch.float64 if gradient.dtype == torch.float64 else torch.float32
    return gradient.detach().to(device="cpu", dtype=kind).numpy()
