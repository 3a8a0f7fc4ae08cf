"""ASTRA-sim's text workloads: a line for each layer, with times and communications of the three parts of training.

A file begins with how the work is spread, and the number of layers. A layer is: its name, a number that is not used,
then time, communication and size of the forward pass, of the input gradient, and of the weight gradient, and the time
of the update, which is not used either. Source: github.com/mlcommons/chakra, src/converter/text_converter.py, and
ASTRA-sim 1.0 for the kinds that it leaves out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.execution import Operation

OPERATIONS = {
    "NONE": None,
    "ALLREDUCE": Operation.ALL_REDUCE,
    "ALLGATHER": Operation.ALL_GATHER,
    "REDUCESCATTER": Operation.REDUCE_SCATTER,
    "ALLTOALL": Operation.ALL_TO_ALL,
}

KINDS = (
    "MICRO",
    "DATA",
    "MODEL",
    "HYBRID_DATA_MODEL",
    "HYBRID_MODEL_DATA",
    "HYBRID_DLRM",
    "HYBRID_DLRM_ENHANCED",
    "HYBRID_TRANSFORMER",
    "HYBRID_CUSTOMIZED",
)
OF_LAYERS = ("DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA")
"""What a layer of HYBRID_CUSTOMIZED may be."""

COLUMNS = 12
LARGEST = 1 << 52
MOST_LAYERS = 100_000


@dataclass(frozen=True)
class Part:
    """Of a layer's training. time: in the file's unit."""

    time: int
    operation: Operation | None
    size_bytes: int


@dataclass(frozen=True)
class Layer:
    name: str
    forward: Part
    input_gradient: Part
    weight_gradient: Part
    kind: str


@dataclass(frozen=True)
class Workload:
    """model_ranks: of a model-parallel group; None: the file does not say. last_bottom_layer: of DLRM."""

    kind: str
    layers: tuple[Layer, ...]
    model_ranks: int | None = None
    last_bottom_layer: int | None = None


def read_workload(file: Path) -> Workload:
    """UserError with file and line if it is none."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: not a text workload") from None
    lines = [(number, line.split()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) < 2:
        raise UserError(f"{file}: a text workload begins with its kind and the number of its layers")
    (first, header), (second, count), *rest = lines
    kind = header[0]
    if kind not in KINDS:
        raise UserError(f"{file}:{first}: workloads of kind {kind[:40]!r} are not known: {', '.join(KINDS)}")
    layers = _number(file, second, count[0], MOST_LAYERS)
    if layers > len(rest) or not layers:
        raise UserError(f"{file}:{second}: {layers} layers are announced, {len(rest)} are there")
    return Workload(
        kind,
        tuple(_layer(file, number, words, kind) for number, words in rest[:layers]),
        _in_header(file, first, header),
        _last_bottom_layer(file, first, header, layers),
    )


def _in_header(file: Path, number: int, header: list[str]) -> int | None:
    found = re.search(r"model_parallel_NPU_group: *(\S+)", " ".join(header))
    return _number(file, number, found[1], 1 << 20) if found else None


def _last_bottom_layer(file: Path, number: int, header: list[str], layers: int) -> int | None:
    if not header[0].startswith("HYBRID_DLRM"):
        return None
    if len(header) < 2:
        raise UserError(f"{file}:{number}: {header[0]} needs the number of the last bottom layer")
    return _number(file, number, header[1], layers - 1)


def _layer(file: Path, number: int, words: list[str], kind: str) -> Layer:
    if len(words) < COLUMNS:
        raise UserError(f"{file}:{number}: a layer has {COLUMNS} columns, not {len(words)}")
    parts = []
    for place in (2, 5, 8):
        operation = words[place + 1]
        if operation not in OPERATIONS:
            raise UserError(f"{file}:{number}: communications of kind {operation[:40]!r} are not known")
        time, size = (_number(file, number, words[place + step], LARGEST) for step in (0, 2))
        parts.append(Part(time, OPERATIONS[operation], size))
    if kind == "HYBRID_CUSTOMIZED":
        kind = words[COLUMNS] if len(words) > COLUMNS else ""
        if kind not in OF_LAYERS:
            raise UserError(f"{file}:{number}: a layer of HYBRID_CUSTOMIZED ends with one of {', '.join(OF_LAYERS)}")
    forward, input_gradient, weight_gradient = parts
    return Layer(words[0], forward, input_gradient, weight_gradient, kind)


def _number(file: Path, number: int, word: str, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", word) or int(word) > most:
        raise UserError(f"{file}:{number}: {word[:40]!r} is not a whole number from 0 to {most}")
    return int(word)
