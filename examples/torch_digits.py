"""Handwritten digits with DistributedDataParallel, an ordinary PyTorch script but for one line (marked).

./gradbed run torch examples/torch_digits.py --workers 4
torchrun --nproc-per-node 4 examples/torch_digits.py
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from gradbed import torch_hook
from gradbed.hosts.learning import dataset

SEED = 1
LEARNING_RATE = 0.3


def make_model() -> nn.Module:
    """The same on every rank."""
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Features between 0 and 1, shape (samples, 64), and labels, in an order of chance."""
    parts = dataset.load("digits")
    features = numpy.concatenate([parts.train.features, parts.test.features])
    return torch.from_numpy(features), torch.from_numpy(numpy.concatenate([parts.train.labels, parts.test.labels]))


def minibatch(
    features: torch.Tensor, labels: torch.Tensor, rank: int, step: int, samples: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """A rank's samples for a step, drawn from its shard."""
    generator = torch.Generator().manual_seed(1_000_003 * rank + step)
    chosen = torch.randint(len(labels), (samples,), generator=generator)
    return features[chosen], labels[chosen]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32, help="samples of a rank and step")
    parser.add_argument("--report", type=Path, help="folder for what each rank found, as JSON")
    options = parser.parse_args()

    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    features, labels = digits()
    train, test = slice(rank, 1400, world), slice(1400, None)

    model = DistributedDataParallel(make_model())
    if torch_hook.available():
        torch_hook.register(model)  # gradients now go through the switches
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for step in range(options.steps):
        inputs, targets = minibatch(features[train], labels[train], rank, step, options.batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if rank == 0 and step % 20 == 19:
            print(f"step {step + 1}: loss {loss.item():.3f}")

    with torch.no_grad():
        accuracy = (model(features[test]).argmax(dim=1) == labels[test]).double().mean().item()
    if rank == 0:
        print(f"test accuracy {100 * accuracy:.1f} %")
    if options.report:
        weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
        found = {"losses": losses, "accuracy": accuracy, "weights_sha256": hashlib.sha256(weights).hexdigest()}
        (options.report / f"rank-{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
