"""What all traces are, whatever they come from: ranks, and the graph of each; and what they are read with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gradbed.hosts.systems.training.traces.graph import RankGraph

# ---- Settings: what a trace's files leave to the simulator ----


ADVANCED: dict[str, Any] = {"advanced": True}
"""Schema of fields that only `--help-all` lists."""


class TraceSettings(BaseModel):
    """Options that belong to the reader of a trace."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    ranks: int | None = Field(
        default=None, ge=1, le=1 << 16, description="Number of ranks of a text workload, whose file does not name it."
    )
    groups: Path | None = Field(
        default=None,
        description="Communicator groups: a JSON file, name -> ranks, as ASTRA-sim's --comm-group-configuration "
        "(default: *.groups.json beside the trace).",
        json_schema_extra=ADVANCED,
    )
    dimensions: str = Field(
        default="",
        pattern=r"^([1-9][0-9]{0,5}(,[1-9][0-9]{0,5}){0,9})?$",
        description="Sizes of the network dimensions of involved_dim, fastest first, such as 8,4.",
        json_schema_extra=ADVANCED,
    )
    control: bool | None = Field(
        default=None,
        description="Respect control dependencies (default: on, but off for PyTorch traces, where they are the call "
        "stack).",
        json_schema_extra=ADVANCED,
    )
    roofline: bool = Field(
        default=False,
        description="Take compute times from num_ops and tensor_size by the roofline model, not from the recording.",
        json_schema_extra=ADVANCED,
    )
    peak_tflops: float | None = Field(
        default=None,
        gt=0,
        description="Peak performance of an accelerator in TFLOP/s (roofline).",
        json_schema_extra=ADVANCED,
    )
    memory_gbyte_per_s: float | None = Field(
        default=None,
        gt=0,
        description="Memory bandwidth of an accelerator in GB/s (roofline).",
        json_schema_extra=ADVANCED,
    )
    remote_gbyte_per_s: float | None = Field(
        default=None,
        gt=0,
        description="Bandwidth in GB/s of the remote memory of load and store nodes.",
        json_schema_extra=ADVANCED,
    )
    remote_delay_ns: int = Field(
        default=0, ge=0, description="Access latency of remote memory in ns.", json_schema_extra=ADVANCED
    )
    text_time: Literal["ns", "us"] = Field(
        default="us",
        description="Time unit of a text workload: us (Chakra's converter) or ns (ASTRA-sim 1.0).",
        json_schema_extra=ADVANCED,
    )
    model_ranks: int | None = Field(
        default=None,
        ge=1,
        description="Number of ranks in each model-parallel group of a text workload (default: all).",
        json_schema_extra=ADVANCED,
    )
    passes: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Number of passes through a text workload.",
        json_schema_extra=ADVANCED,
    )

    @property
    def dimension_sizes(self) -> tuple[int, ...]:
        """Empty: they are not known."""
        return tuple(map(int, self.dimensions.split(","))) if self.dimensions else ()


# ---- Traces ----


class Trace(ABC):
    """A trace: the graphs of all ranks."""

    name: str
    """Name for people."""
    ranks: int
    """Number of ranks; they count from 0."""

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
