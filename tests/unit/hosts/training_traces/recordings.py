"""What a recorded rank leaves, made by a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REDUCE = (
    "c10d::allreduce_(Tensor[] tensors, ProcessGroup process_group, ReduceOp reduce_op, Tensor? sparse_indices, "
    "bool async_op=True, int timeout=-1) -> (Tensor[], Work)"
)
BROADCAST = (
    "c10d::broadcast_(Tensor[] tensors, ProcessGroup process_group, int root_rank, int root_tensor, "
    "bool async_op=True, int timeout=-1) -> (Tensor[], Work)"
)
RECEIVE = "c10d::recv_(Tensor[] tensors, ProcessGroup process_group, int src, int tag) -> Work"
SEND = "c10d::send(Tensor[] tensors, ProcessGroup process_group, int dst, int tag) -> Work"
ANY = "aten::x(Tensor self) -> Tensor"


def tensor(storage: int, values: int = 10, value_bytes: int = 4) -> list[Any]:
    return [1000 + storage, storage, 0, values, value_bytes, "cpu"]


class Recording:
    """Of one rank. Every operator takes ten microseconds longer than the one before, and is a record of its own."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.caller = 1

    def add(self, name: str, schema: str, *inputs: Any, duration_us: float = 0, thread_us: float = 0) -> int:
        number = len(self.nodes) + 2
        attributes = [{"name": "rf_id", "value": number}, {"name": "op_schema", "value": schema}]
        values = {"values": list(inputs)}
        self.nodes.append(
            {
                "id": number,
                "name": name,
                "ctrl_deps": self.caller,
                "inputs": values,
                "outputs": {"values": []},
                "attrs": attributes,
            }
        )
        self.events.append(
            {"ph": "X", "ts": thread_us or 10.0 * number, "dur": duration_us, "args": {"Record function id": number}}
        )
        return number

    def operators(self) -> str:
        """As the observer writes them."""
        return json.dumps({"nodes": self.nodes})

    def write(self, folder: Path, rank: int, data_parallel: tuple[int, ...], *, operators: bool = True) -> None:
        """operators: that file, too."""
        if operators:
            (folder / f"operators.{rank}.json").write_text(self.operators())
        (folder / f"timeline.{rank}.json").write_text(json.dumps({"traceEvents": self.events}))
        (folder / f"ranks.{rank}.json").write_text(json.dumps({"data_parallel": data_parallel}))
