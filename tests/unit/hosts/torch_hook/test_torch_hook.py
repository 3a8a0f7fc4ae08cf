"""The communication hook on a process group of one rank, with a network of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.hosts import torch_hook

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


class FakeSession:
    """Every worker has the same gradient."""

    headroom_bits = 6
    exponent: int | None = None
    clipped = 0

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self.opened: list[int] = []
        self.rounds: list[np.ndarray] = []

    def open(self, values: int) -> None:
        self.opened.append(values)

    def all_reduce(self, values: np.ndarray, clipped: int) -> np.ndarray:
        assert clipped == self.clipped
        self.rounds.append(values)
        return values.astype(np.int64)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSession]:
    fake = FakeSession()
    monkeypatch.setattr(torch_hook, "_session", fake)
    torch.distributed.init_process_group("gloo", store=torch.distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)  # fmt: skip  # noqa: E501
    yield fake
    torch.distributed.destroy_process_group()


def layers() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(*(torch.nn.Linear(6, 6) for _ in range(5)), torch.nn.Linear(6, 1))


@pytest.mark.thorough
def test_several_buckets_are_one_round(session: FakeSession) -> None:
    plain, model = layers(), torch.nn.parallel.DistributedDataParallel(layers(), bucket_cap_mb=0.0003)
    torch_hook.register(model)
    values = sum(parameter.numel() for parameter in plain.parameters())
    assert session.opened == [values]
    for step in range(4):
        inputs = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
        for each in (plain, model):
            each.zero_grad()
            each(inputs).square().mean().backward()
        assert len(session.rounds) == step + 1
        assert len(session.rounds[-1]) == values
        for exact, found in zip(plain.parameters(), model.parameters(), strict=True):
            assert found.grad.dtype == torch.float32
            torch.testing.assert_close(found.grad, exact.grad, rtol=1e-4, atol=1e-6)


def test_values_stay_in_their_places_when_buckets_change(session: FakeSession) -> None:
    """What is held back of one pass is added in the next: DDP cuts buckets anew after the first one."""
    session.exponent = 20
    plain, model = layers(), torch.nn.parallel.DistributedDataParallel(layers(), bucket_cap_mb=0.0003)
    torch_hook.register(model)
    for _ in range(3):
        for each in (plain, model):
            each.zero_grad()
            each(torch.ones(4, 6)).square().mean().backward()
        exact = torch.cat([parameter.grad.flatten() for parameter in plain.parameters()]).double().numpy()
        assert np.abs(session.rounds[-1] - np.ldexp(exact, 20)).max() < 64


def test_no_number_counts_as_zero_and_infinity_as_the_largest(session: FakeSession) -> None:
    session.clipped = 3
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1, bias=False))
    torch_hook.register(model)
    # The gradient of its weights is its input.
    model(torch.tensor([[float("nan"), float("inf"), float("-inf")]])).sum().backward()
    assert session.rounds[-1].tolist() == [0, 2**31 - 1, -(2**31) + 1]
    assert torch.isfinite(model.module.weight.grad).all()


def test_frozen_parameters_are_left_out(session: FakeSession) -> None:
    module = layers()
    module[0].requires_grad_(False)
    model = torch.nn.parallel.DistributedDataParallel(module)
    torch_hook.register(model)
    assert session.opened == [sum(parameter.numel() for parameter in layers()[1:].parameters())]
    model(torch.ones(1, 6)).sum().backward()
    assert module[0].weight.grad is None


def test_what_cannot_be_registered(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="not a Sequential"):
        torch_hook.register(layers())
    session.workers = 2
    with pytest.raises(UserError, match="has 1 ranks, the job 2 workers"):
        torch_hook.register(torch.nn.parallel.DistributedDataParallel(layers()))
    monkeypatch.setattr(torch_hook, "_session", None)
    assert not torch_hook.available()
    with pytest.raises(UserError, match="gradbed run torch"):
        torch_hook.register(layers())
