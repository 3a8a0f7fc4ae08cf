"""A PyTorch script across the switches: every rank's weights are bit for bit those of a single process."""

from __future__ import annotations

import hashlib
import json
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.command import gradbed
from tests.emulation.torch_example import TORCH_DIGITS, torch_digits

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = [pytest.mark.thorough, pytest.mark.root]

LANES = 64
TIMEOUT_S = 240


def gradbed_torch(
    output: Path, script: Path, workers: int, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    network = ["--topology", "leaf-spine:2,2,2", "--lanes", LANES, "--output", output]
    command = ["run", "torch", script, "--workers", workers, *network, *options]
    return gradbed(*command, timeout_s=TIMEOUT_S, **environment)


def single_process(workers: int, steps: int, samples: int) -> tuple[list[list[float]], str]:
    """Losses of all ranks, and the digest of the weights: the same model, one gradient after the other."""
    from gradbed.hosts.learning.fragments import as_sent
    from gradbed.hosts.learning.quantise import TensorScales

    torch.set_num_threads(1)  # as the agents do: the order of additions must not depend on the machine
    digits = torch_digits()
    features, labels = digits.digits()
    model = digits.make_model()
    parameters = list(model.parameters())
    order = list(range(len(parameters)))
    scales = TensorScales([parameter.numel() for parameter in parameters])
    optimizer = torch.optim.SGD(parameters, lr=digits.LEARNING_RATE)
    losses: list[list[float]] = [[] for _ in range(workers)]
    for step in range(steps):
        total = 0
        for rank in range(workers):
            shard = slice(rank, 1400, workers)
            inputs, targets = digits.minibatch(features[shard], labels[shard], rank, step, samples)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            losses[rank].append(loss.item())
            flat = torch.cat([parameter.grad.flatten() for parameter in parameters]).double().numpy()
            total = total + scales.quantised(order, flat).values.astype("int64")
        mean = torch.from_numpy(scales.mean(order, as_sent(total, LANES), workers))
        sizes = [parameter.numel() for parameter in parameters]
        for parameter, part in zip(parameters, mean.split(sizes), strict=True):
            parameter.grad = part.to(parameter).reshape(parameter.shape)
        optimizer.step()
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in parameters)
    return losses, hashlib.sha256(weights).hexdigest()


@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (3, ("--loss", "0.02", "--duplicate", "0.02")),
        pytest.param(2, ("--exchange", "ring"), marks=pytest.mark.nightly),
    ],
    ids=["server", "ring"],
)
def test_the_example_equals_a_single_process(workers: int, options: tuple[str, ...], tmp_path: Path) -> None:
    steps, samples = 24, 16
    arguments = ["--", "--steps", str(steps), "--batch", str(samples), "--report", str(tmp_path)]
    outcome = gradbed_torch(tmp_path, TORCH_DIGITS, workers, *options, *arguments)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "test accuracy" in outcome.stdout
    assert f"{steps} gradients of 2410 values summed over {workers} workers" in outcome.stderr
    found = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(workers)]
    losses, digest = single_process(workers, steps, samples)
    assert [rank["weights_sha256"] for rank in found] == [digest] * workers
    assert [rank["losses"] for rank in found] == losses
    first, last = (sum(rank["losses"][step] for rank in found) for step in (0, -1))
    assert last < 0.9 * first


def test_nobody_waits_for_a_rank_that_has_ended(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "from torch import distributed\n"
        "distributed.init_process_group('gloo')\n"
        "if distributed.get_rank() == 0:\n"
        "    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))\n"
    )
    outcome = gradbed_torch(tmp_path, script, 2)
    assert outcome.returncode == 2
    assert "worker 0: the script failed: RuntimeError" in outcome.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        # As the RuntimeError of the test above.
        pytest.param(
            "raise ValueError('no such\\nlayer')",
            "worker 0: the script failed: ValueError: no such layer",
            marks=pytest.mark.nightly,
        ),
        ("print('no model here')", "registered no model"),
    ],
)
def test_what_a_script_can_do_wrong_is_one_line(code: str, message: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(code)
    outcome = gradbed_torch(tmp_path, script, 1)
    assert message in outcome.stderr
    assert outcome.returncode == (0 if "print" in code else 2)
    if "print" in code:
        assert outcome.stdout == "no model here\n"


@pytest.mark.skipif(
    any(not folder.stat().st_mode & stat.S_IXOTH for folder in Path(__file__).resolve().parents),
    reason="the checkout is closed to other users",
)
def test_under_sudo_the_script_is_its_callers() -> None:
    """What it writes, and what the run leaves, belongs to the person; the network still takes root."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own is closed to other users
        folder = Path(name)
        folder.chmod(0o777)
        arguments = ["--", "--steps", "2", "--report", name]
        sudo = {"SUDO_UID": "1234", "SUDO_GID": "2345"}
        outcome = gradbed_torch(folder / "results", TORCH_DIGITS, 2, *arguments, **sudo)
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        assert "2 gradients of 2410 values summed over 2 workers" in outcome.stderr
        left = {path.relative_to(folder): path.lstat() for path in folder.rglob("*")}
        assert {Path("rank-0.json"), Path("results/torch/latest")} <= left.keys()
        assert {(status.st_uid, status.st_gid) for status in left.values()} == {(1234, 2345)}
