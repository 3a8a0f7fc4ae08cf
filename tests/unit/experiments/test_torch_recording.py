"""Scripts that PyTorch runs, recorded: sizes are the model's parameters, and groups and peers those of the script."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments import torch_scripts as torch_recording
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.graph import Kind
from tests.emulation.torch_example import TORCH_DIGITS, torch_digits

pytest.importorskip("torch", reason="PyTorch is not installed")

CONVERT = "gradbed.hosts.systems.training.traces.recording:convert_recording"

OPERATIONS = """
import torch
from torch import distributed

distributed.init_process_group("gloo")
rank = distributed.get_rank()
pair = distributed.new_group([0, 2])
values = torch.ones(6)
distributed.all_reduce(values)
if rank in (0, 2):
    distributed.broadcast(values, 2, group=pair)
    distributed.all_gather([torch.empty(6), torch.empty(6)], values, group=pair)
if rank == 0:
    distributed.send(values, 1, tag=5)
elif rank == 1:
    distributed.recv(values, 0, tag=5)
work = distributed.all_reduce(torch.ones(3, dtype=torch.float64), async_op=True)
work.wait()
parts = [torch.ones(2) for _ in range(3)]
distributed.scatter(torch.empty(2), parts if rank == 1 else None, src=1)
distributed.gather(values, [torch.empty(6) for _ in range(3)] if rank == 1 else None, dst=1)
distributed.all_to_all_single(torch.empty(6), values)
distributed.reduce(values, 1)
distributed.barrier()
"""


GROUP_THAT_ENDS = """
import os
import threading
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel


def threads():
    return len(os.listdir("/proc/self/task"))


def main():
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()
    distributed.barrier()
    of_group = threads()
    distributed.destroy_process_group()
    return of_group


of_group = main()
print("threads that ended:", of_group - threads())
threading.Timer(0.5, print, ["a thread's last words"]).start()
"""


@pytest.fixture(autouse=True)
def a_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_recording, "_recorder", lambda: CONVERT)


def test_gradients_of_a_script_are_its_parameters(tmp_path: Path) -> None:
    steps, ranks = 3, 2
    folder = tmp_path / "trace"
    arguments = ["--steps", str(steps), "--batch", "4"]
    assert torch_recording.run_torch_recording(TORCH_DIGITS, arguments, ranks, folder) == 0
    gradient = sum(parameter.numel() for parameter in torch_digits().make_model().parameters()) * 4
    trace = open_trace(folder)
    for rank in range(ranks):
        nodes = trace.nodes(rank)
        reduced = [node for node in nodes if node.operation is Operation.ALL_REDUCE]
        assert sum(node.size_bytes for node in reduced) == steps * gradient
        assert {node.group for node in reduced} == {()}
        assert sum(node.duration_ns for node in nodes if node.kind is Kind.COMPUTE) > 0


@pytest.mark.nightly
def test_every_operation_has_its_group_and_size(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(OPERATIONS)
    torch_recording.run_torch_recording(script, [], 3, tmp_path / "trace")
    trace = open_trace(tmp_path / "trace")
    found = [
        Counter(
            (each.kind, each.operation, each.size_bytes, each.group, each.root, each.peer, each.tag) for each in nodes
        )
        for nodes in ([node for node in trace.nodes(rank) if node.kind is not Kind.COMPUTE] for rank in range(3))
    ]

    def collective(operation: Operation, size: int, group: tuple[int, ...] = (), root: int | None = None) -> object:
        return (Kind.COLLECTIVE, operation, size, group, root, None, 0)

    all_ranks = {
        collective(Operation.ALL_REDUCE, 24),
        collective(Operation.ALL_REDUCE, 24),
        collective(Operation.SCATTER, 24, root=1),
        collective(Operation.GATHER, 24, root=1),
        collective(Operation.ALL_TO_ALL, 24),
        collective(Operation.REDUCE, 24, root=1),
        collective(Operation.BARRIER, 0),
    }
    pair = {collective(Operation.BROADCAST, 24, (0, 2), 2), collective(Operation.ALL_GATHER, 24, (0, 2))}
    assert all(all_ranks <= of_rank.keys() for of_rank in found)
    assert [pair <= of_rank.keys() for of_rank in found] == [True, False, True]
    assert found[0][(Kind.SEND, None, 24, (), None, 1, 5)] == found[1][(Kind.RECEIVE, None, 24, (), None, 0, 5)] == 1


@pytest.mark.nightly
def test_a_rank_that_fails_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, sys\nif os.environ['RANK'] == '1':\n    sys.exit('rank one has had enough')\n")
    with pytest.raises(UserError, match="rank 1 of the script ended with status 1: rank one has had enough"):
        torch_recording.run_torch_recording(script, [], 2, tmp_path / "trace")
    assert not (tmp_path / "trace").exists()


def test_groups_do_not_end_before_their_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Ending, they wait for threads that may wait for Python's lock, which they hold: some runs hung so."""
    script = tmp_path / "script.py"
    script.write_text(GROUP_THAT_ENDS)
    assert torch_recording.run_torch_recording(script, [], 2, tmp_path / "trace") == 0
    said = capfd.readouterr().out
    assert "threads that ended: 0" in said
    assert "a thread's last words" in said


def test_folders_and_scripts_are_looked_at_first(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no script"):
        torch_recording.run_torch_recording(tmp_path / "none.py", [], 2, tmp_path / "trace")
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "a").touch()
    with pytest.raises(UserError, match="is there already"):
        torch_recording.run_torch_recording(TORCH_DIGITS, [], 2, tmp_path / "trace")
