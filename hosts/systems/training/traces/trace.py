"""What all traces are, whatever they come from: ranks, and the graph of each; and what they are read with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gradbed.hosts.systems.training.traces.graph import RankGraph

# ---- Settings: what a trace's files leave to the simulator ----


class TraceSettings(BaseModel):
    """Options that belong to the reader of a trace."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    ranks: int | None = Field(
        default=None, ge=1, le=1 << 16, description="Ranks of a text workload, which does not say how many."
    )
    groups: Path | None = Field(
        default=None,
        description="A JSON file of groups, name -> ranks, as ASTRA-sim's --comm-group-configuration; default: the "
        "one beside the trace (*.groups.json), if there is one.",
    )
    dimensions: str = Field(
        default="",
        pattern=r"^([1-9][0-9]{0,5}(,[1-9][0-9]{0,5}){0,9})?$",
        description="Sizes of the dimensions that involved_dim counts, the fastest first, such as 8,4.",
    )
    control: bool | None = Field(
        default=None,
        description="Nodes wait for their control dependencies, too; default: not in traces of PyTorch, where these "
        "say who called whom.",
    )
    roofline: bool = Field(
        default=False,
        description="Computations take what num_ops and tensor_size say (docs/traces.md), not what was recorded.",
    )
    peak_tflops: float | None = Field(default=None, gt=0, description="Of the accelerator, for num_ops.")
    memory_gbyte_per_s: float | None = Field(
        default=None, gt=0, description="Of the accelerator's memory, for tensor_size (roofline)."
    )
    remote_gbyte_per_s: float | None = Field(
        default=None, gt=0, description="Of the memory that load and store nodes use."
    )
    remote_delay_ns: int = Field(default=0, ge=0, description="Of each of its accesses.")
    text_time: Literal["ns", "us"] = Field(
        default="us",
        description="Unit of a text workload's times: us as Chakra's converter takes them, ns as ASTRA-sim 1.0 did.",
    )
    model_ranks: int | None = Field(
        default=None, ge=1, description="Ranks of each model-parallel group of a text workload; default: all."
    )
    passes: int = Field(default=1, ge=1, le=10_000, description="Of a text workload, one after the other.")

    @property
    def dimension_sizes(self) -> tuple[int, ...]:
        """Empty: they are not known."""
        return tuple(map(int, self.dimensions.split(","))) if self.dimensions else ()


# ---- Traces ----


class Trace(ABC):
    """ranks: how many; they count from 0. name: for people."""

    name: str
    ranks: int

    def __init__(self) -> None:
        self._graphs: dict[int, RankGraph] = {}

    def nodes(self, rank: int) -> RankGraph:
        """A rank's nodes: a sequence of execution.Node. It is read or made when it is asked for first, and kept; what
        ranks have alike is kept once. UserError with file, rank and node if it is broken."""
        if rank not in self._graphs:
            if not 0 <= rank < self.ranks:
                raise IndexError(f"rank {rank} of {self.ranks}")
            self._graphs[rank] = self._read(rank)
        return self._graphs[rank]

    @abstractmethod
    def _read(self, rank: int) -> RankGraph:
        """UserError if it is broken."""

    def place(self, rank: int) -> str:
        """Return where a rank stands, for messages: its file, if it has one."""
        return f"{self.name}: rank {rank}"
