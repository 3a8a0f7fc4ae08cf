"""A transformer and how it is spread over ranks, by a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gradbed.hosts.systems.training.traces.trace import ADVANCED

LARGEST_WORLD = 1 << 16

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "tiny": {"layers": 4, "width": 256, "heads": 4, "sequence": 128, "vocabulary": 1000, "batch": 16},
    "gpt-345m": {"layers": 24, "width": 1024, "heads": 16, "sequence": 1024, "vocabulary": 50_257, "batch": 32},
    "gpt-7b": {"layers": 32, "width": 4096, "heads": 32, "sequence": 2048, "vocabulary": 50_257, "batch": 64},
    "gpt-175b": {"layers": 96, "width": 12_288, "heads": 96, "sequence": 2048, "vocabulary": 50_257, "batch": 1536},
}
"""By name: what a model of that name has where nothing else is said. gpt-175b: Brown et al., "Language Models are
Few-Shot Learners", table 2.1; gpt-345m: Shoeybi et al., "Megatron-LM", section 5."""


class TransformerModel(BaseModel):
    """A transformer of the GPT kind, trained on dp x tp x pp ranks. ValueError for numbers that do not go together.

    Ranks count as in Megatron-LM: tensor parallel first, then data parallel (expert parallel groups are neighbours
    inside it), then the pipeline: rank = tensor + tp x (data + dp x stage).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    preset: str | None = Field(
        default=None,
        description=f"Model preset: {', '.join(PRESETS)}; other options override its numbers.",
    )
    layers: int = Field(default=4, ge=1, le=10_000, description="Number of transformer layers.")
    width: int = Field(default=256, ge=1, le=1 << 20, description="Hidden size of the model.")
    feed_forward: int | None = Field(
        default=None,
        ge=1,
        le=1 << 24,
        description="Feed-forward (MLP) hidden size (default: 4 x --width).",
        json_schema_extra=ADVANCED,
    )
    heads: int = Field(default=1, ge=1, description="Number of attention heads.", json_schema_extra=ADVANCED)
    sequence: int = Field(default=128, ge=1, le=1 << 24, description="Sequence length in tokens.")
    batch: int = Field(default=16, ge=1, description="Global batch size in sequences.")
    micro_batches: int = Field(
        default=1, ge=1, le=10_000, description="Number of micro-batches of each data-parallel rank."
    )
    vocabulary: int = Field(default=1000, ge=1, description="Vocabulary size.", json_schema_extra=ADVANCED)
    experts: int = Field(default=0, ge=0, description="Number of experts in each MLP; 0: dense.")
    top_k: int = Field(default=2, ge=1, description="Number of experts for each token.", json_schema_extra=ADVANCED)
    dp: int = Field(default=1, ge=1, le=LARGEST_WORLD, description="Data-parallel size.")
    tp: int = Field(default=1, ge=1, le=LARGEST_WORLD, description="Tensor-parallel size.")
    pp: int = Field(default=1, ge=1, le=LARGEST_WORLD, description="Pipeline-parallel size (number of stages).")
    ep: int = Field(default=1, ge=1, le=LARGEST_WORLD, description="Expert-parallel size; it divides --dp.")
    sequence_parallel: bool = Field(
        default=False,
        description="Sequence parallelism: reduce-scatter and all-gather between layers instead of all-reduce.",
        json_schema_extra=ADVANCED,
    )
    schedule: Literal["1f1b", "gpipe"] = Field(default="1f1b", description="Pipeline schedule: 1f1b or gpipe.")
    optimizer: Literal["ddp", "zero1"] = Field(
        default="ddp",
        description="Gradient exchange: ddp (all-reduce) or zero1 (reduce-scatter, then all-gather of parameters).",
    )
    bucket_bytes: int = Field(
        default=25 << 20, ge=1, description="Gradient bucket size in bytes.", json_schema_extra=ADVANCED
    )
    bytes: int = Field(
        default=2,
        ge=1,
        le=16,
        description="Size in bytes of one activation or parameter value.",
        json_schema_extra=ADVANCED,
    )
    gradient_bytes: int | None = Field(
        default=None,
        ge=1,
        le=16,
        description="Size in bytes of one gradient value (default: --bytes).",
        json_schema_extra=ADVANCED,
    )
    tflops: float = Field(
        default=150.0, gt=0, description="Achieved performance of a rank in TFLOP/s.", json_schema_extra=ADVANCED
    )
    flop_time: float | None = Field(
        default=None, gt=0, description="Time of one FLOP in ps, instead of --tflops.", json_schema_extra=ADVANCED
    )
    iterations: int = Field(default=1, ge=1, le=1000, description="Number of iterations.")

    @model_validator(mode="before")
    @classmethod
    def _of_preset(cls, given: Any) -> Any:
        name = given.get("preset") if isinstance(given, dict) else None
        if name is None:
            return given
        if name not in PRESETS:
            raise ValueError(f"--preset: no model is called {name!r}: there are {', '.join(PRESETS)}")
        return {**PRESETS[name], **given}

    @model_validator(mode="after")
    def _fits(self) -> TransformerModel:
        for what, number, parts, by in (
            ("--width", self.width, "--tp", self.tp),
            ("--feed-forward", self.feed_forward_width, "--tp", self.tp),
            ("--heads", self.heads, "--tp", self.tp),
            ("--width", self.width, "--heads", self.heads),
            ("--layers", self.layers, "--pp", self.pp),
            ("--batch", self.batch, "--dp times --micro-batches", self.dp * self.micro_batches),
            ("--dp", self.dp, "--ep", self.ep),
            ("--experts", self.experts, "--ep", self.ep),
            *([("--sequence", self.sequence, "--tp", self.tp)] if self.sequence_parallel else []),
        ):
            if number % by:
                raise ValueError(f"{what}: {number} is not a multiple of {parts} ({by})")
        if self.experts and self.top_k > self.experts:
            raise ValueError(f"--top-k: {self.top_k} of {self.experts} experts")
        if self.ep > 1 and not self.experts:
            raise ValueError("--ep: there are no experts; say how many (--experts)")
        if self.ranks > LARGEST_WORLD:
            raise ValueError(f"--dp, --tp, --pp: {self.ranks} ranks are more than {LARGEST_WORLD}")
        return self

    @property
    def ranks(self) -> int:
        return self.dp * self.tp * self.pp

    @property
    def feed_forward_width(self) -> int:
        return self.feed_forward or 4 * self.width

    @property
    def tokens(self) -> int:
        """Return the tokens of a micro-batch."""
        return self.batch // (self.dp * self.micro_batches) * self.sequence

    @property
    def gradient_value_bytes(self) -> int:
        return self.gradient_bytes or self.bytes

    @property
    def padded_vocabulary(self) -> int:
        """A multiple of tp, so that tensor parallel ranks hold equal parts."""
        return -(-self.vocabulary // self.tp) * self.tp

    def duration_ns(self, flops: int) -> int:
        """Return the time of so many floating point operations on one rank."""
        if self.flop_time is not None:
            return round(flops * self.flop_time / 1000)
        return round(flops / (self.tflops * 1000))


# ---- Which rank is where, and in which groups (TransformerModel says the order) ----


Group = tuple[int, ...]


@dataclass(frozen=True)
class ParallelPosition:
    """The position of a rank: which of its tensor and data parallel ranks it is, and its stage of the pipeline."""

    tensor: int
    data: int
    stage: int


def place_of(model: TransformerModel, rank: int) -> ParallelPosition:
    return ParallelPosition(rank % model.tp, rank // model.tp % model.dp, rank // (model.tp * model.dp))


def rank_at(model: TransformerModel, place: ParallelPosition) -> int:
    return place.tensor + model.tp * (place.data + model.dp * place.stage)


def tensor_group(model: TransformerModel, place: ParallelPosition) -> Group:
    return tuple(rank_at(model, ParallelPosition(tensor, place.data, place.stage)) for tensor in range(model.tp))


def data_group(model: TransformerModel, place: ParallelPosition) -> Group:
    return _of_data(model, place, range(model.dp))


def expert_group(model: TransformerModel, place: ParallelPosition) -> Group:
    """Return the ranks that hold a layer's experts together."""
    first = place.data // model.ep * model.ep
    return _of_data(model, place, range(first, first + model.ep))


def expert_data_group(model: TransformerModel, place: ParallelPosition) -> Group:
    """Return the ranks that hold the same experts."""
    return _of_data(model, place, range(place.data % model.ep, model.dp, model.ep))


def embedding_group(model: TransformerModel, place: ParallelPosition) -> Group:
    """Return the ranks at both ends of the pipeline that hold the same part of the words' embeddings."""
    ends = dict.fromkeys((0, model.pp - 1))
    return tuple(rank_at(model, ParallelPosition(place.tensor, place.data, stage)) for stage in ends)


def _of_data(model: TransformerModel, place: ParallelPosition, among: range) -> Group:
    return tuple(rank_at(model, ParallelPosition(place.tensor, data, place.stage)) for data in among)
