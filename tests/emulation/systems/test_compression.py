"""Compression on the real clock: the same agents in Mininet, the kernel's TCP beside them, and a PyTorch script."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.command import rows, run_well
from tests.emulation.torch_example import torch_digits

pytestmark = [pytest.mark.thorough, pytest.mark.root]


TWO_LEAVE = """
name: leaving
system: compression
clock: real
topology: {kind: "star:5"}
ratio: {rule: none}
transport: {protocol: tcp, pacing: none, left_after_us: 100000, give_up_us: 3000000}
workload: {workers: 4, rounds: 2, values: 26400}
faults:
  - {fault: link-change, link: [h1, s1], change: {rate_mbps: 50}, at_ms: 5}
  - {fault: agent-stop, agent: worker 0, at_ms: 10}
  - {fault: link-down, link: [h3, s1], at_ms: 20}
  - {fault: agent-stop, agent: worker 1, at_ms: 21}
"""
"""Gradients that take 68 ms together. Of the first worker the kernel closes the connection, the second only falls
silent."""


def test_workers_that_leave_in_the_middle_are_not_waited_for_over_tcp(tmp_path: Path) -> None:
    """The second round is one like any other, of those that are there."""
    (tmp_path / "leaving.yaml").write_text(TWO_LEAVE)
    run_well("run", tmp_path / "leaving.yaml", "--scale", 0.1, "--output", tmp_path)
    folder = tmp_path / "leaving" / "latest"
    (trial,) = rows(folder / "trials.csv")
    assert trial["failures"] == ""
    # Never more than the rate that the link has now; how near it comes is the machine's affair.
    assert float(trial["validity_link_achieved"]) < 1.1
    assert [row["summed_workers"] for row in rows(folder / "rounds.csv")] == ["4", "2"]


# ---- A script ----

WORKERS, STEPS, SAMPLES, PART = 2, 5, 16, 0.05


def single_process() -> str:
    """The digest of the weights: all ranks in this process, each with what it holds back."""
    import torch

    from gradbed.experiments.systems.compression.phase import EXPONENT
    from gradbed.hosts.compressors.error_feedback import ErrorFeedback
    from gradbed.hosts.compressors.methods import compressor
    from gradbed.hosts.learning.quantise import TensorScales

    torch.set_num_threads(1)  # as the agents do
    digits = torch_digits()
    features, labels = digits.digits()
    model = digits.make_model()
    parameters = list(model.parameters())
    order = list(range(len(parameters)))
    scales = TensorScales([parameter.numel() for parameter in parameters], exponent=EXPONENT)
    feedback = [ErrorFeedback(scales.values) for _ in range(WORKERS)]
    top = compressor(f"topk:{PART}")
    for step in range(STEPS):
        total = np.zeros(scales.values, np.int64)
        for rank in range(WORKERS):
            shard = slice(rank, 1400, WORKERS)
            inputs, targets = digits.minibatch(features[shard], labels[shard], rank, step, SAMPLES)
            model.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            flat = torch.cat([parameter.grad.flatten() for parameter in parameters]).double().numpy()
            feedback[rank].take(scales.quantised(order, flat).values)
            content = top.compress(feedback[rank].held, step)
            feedback[rank].sent(content.places, content.values)
            total += content.decoded()
        mean = torch.from_numpy(scales.mean(order, total, WORKERS))
        for parameter, part in zip(parameters, mean.split([p.numel() for p in parameters]), strict=True):
            # As torch.optim.SGD, of which the import takes long.
            parameter.data.add_(part.to(parameter).reshape(parameter.shape), alpha=-digits.LEARNING_RATE)
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in parameters)).hexdigest()


# A script's gradients: test_torch_hook.py; what is compressed and held back: tests/unit/compression/.
@pytest.mark.nightly
def test_a_script_sends_compressed_gradients(tmp_path: Path) -> None:
    """All ranks have the weights of a single process, bit for bit: nothing of what is held back gets lost or into
    another place, though DDP hands over its buckets in another order from the second pass on."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    topology = ["--workers", str(WORKERS), "--topology", "star:3"]
    options = [*topology, "--compress", f"topk:{PART}", "--ratio", "corrected"]
    script = ["--", "--steps", str(STEPS), "--batch", str(SAMPLES), "--report", str(tmp_path)]
    command = ["run", "torch", "examples/torch_digits.py", *options, "--output", str(tmp_path), *script]
    ended = run_well(*command)
    assert f"{STEPS} gradients of 2410 values summed" in ended.stderr
    found = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(WORKERS)]
    assert [rank["weights_sha256"] for rank in found] == [single_process()] * WORKERS
