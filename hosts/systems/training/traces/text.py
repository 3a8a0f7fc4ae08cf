"""ASTRA-sim's text workloads as traces: every rank does the same, with ranks of its own groups.

A file has a line for each layer, with times and communications of the three parts of training. It begins with how
the work is spread, and the number of layers. A layer is: its name, a number that is not used, then time,
communication and size of the forward pass, of the input gradient, and of the weight gradient, and the time of the
update, which is not used either. Source: github.com/mlcommons/chakra, src/converter/text_converter.py, and ASTRA-sim
1.0 for the kinds that it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.graph import Kind, RankGraph, TraceNode, graph_of
from gradbed.hosts.systems.training.traces.trace import Trace, TraceSettings

# ---- Files ----


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
class LayerPart:
    """A part of a layer's training."""

    time: int
    """Time in the file's unit."""
    operation: Operation | None
    size_bytes: int


@dataclass(frozen=True)
class Layer:
    name: str
    forward: LayerPart
    input_gradient: LayerPart
    weight_gradient: LayerPart
    kind: str


@dataclass(frozen=True)
class TextWorkload:
    """A text workload as its file has it."""

    kind: str
    layers: tuple[Layer, ...]
    model_ranks: int | None = None
    """Ranks of a model-parallel group; None: the file does not say."""
    last_bottom_layer: int | None = None
    """Last bottom layer of a DLRM."""


def read_workload(file: Path) -> TextWorkload:
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
    return TextWorkload(
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
        parts.append(LayerPart(time, OPERATIONS[operation], size))
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


# ---- Traces ----


NS = {"ns": 1, "us": 1000}


class TemplateGroup(IntEnum):
    """Groups of the template: ranks that share a model, and those that share its data."""

    MODEL = 0
    DATA = 1
    MODEL_OUTSIDE = 2
    DATA_INSIDE = 3
    EVERYBODY = 4


class TextTrace(Trace):
    """A workload on so many ranks."""

    def __init__(self, file: Path, settings: TraceSettings) -> None:
        """UserError if the file is no workload, or does not say how many ranks there are."""
        super().__init__()
        self.name = str(file)
        self._workload = read_workload(file)
        if settings.ranks is None:
            raise UserError(f"{file}: a text workload does not say how many ranks there are: say it (--ranks)")
        self.ranks = settings.ranks
        self._model_ranks = settings.model_ranks or self._workload.model_ranks or self.ranks
        if self.ranks % self._model_ranks:
            raise UserError(f"{file}: {self.ranks} ranks are no whole number of groups of {self._model_ranks}")
        # Without a word about groups, all ranks are in both, as Chakra's converter has it.
        self._grouped = bool(settings.model_ranks or self._workload.model_ranks)
        made = _Passes(self._workload, NS[settings.text_time])
        for _ in range(settings.passes):
            made.add()
        self._template = graph_of(made.nodes)

    def _read(self, rank: int) -> RankGraph:
        groups = tuple(self._group(TemplateGroup(role), rank) for (role,) in self._template.groups)
        return replace(self._template, groups=groups)

    def _group(self, role: TemplateGroup, rank: int) -> tuple[int, ...]:
        if role is TemplateGroup.EVERYBODY or not self._grouped:
            return ()
        inside = (
            self._model_ranks
            if role in (TemplateGroup.MODEL, TemplateGroup.DATA)
            else self.ranks // self._model_ranks
        )
        if role in (TemplateGroup.MODEL, TemplateGroup.DATA_INSIDE):
            first = rank // inside * inside
            group = tuple(range(first, first + inside))
        else:
            group = tuple(range(rank % inside, self.ranks, inside))
        return () if len(group) == self.ranks else group


@dataclass
class _Made:
    """The last nodes of a layer in the pass before, if it had them."""

    weights_compute: int | None = None
    weights_sent: int | None = None


class _Passes:
    """The nodes of a workload, pass after pass."""

    def __init__(self, workload: TextWorkload, ns: int) -> None:
        """ns: in a unit of the file's times."""
        self._workload = workload
        self._ns = ns
        self.nodes: list[TraceNode] = []
        self._made = [_Made() for _ in workload.layers]
        self._pass = 0

    def add(self) -> None:
        """Add one more pass."""
        kind = self._workload.kind
        if kind == "MICRO":
            for layer in self._workload.layers:
                self._communicate(layer, "WG", layer.weight_gradient, TemplateGroup.EVERYBODY, ())
        elif kind == "DATA" or kind.startswith("HYBRID_DLRM"):
            self._weights_first()
        else:
            self._inputs_first()
        self._pass += 1

    def _weights_first(self) -> None:
        """Add a pass of data parallel workloads, whose weights' gradients alone are exchanged, beside all else; and
        of DLRM, which has all-to-alls of its embeddings as well (layer 0).
        """
        layers, made = self._workload.layers, self._made
        bottom = self._workload.last_bottom_layer
        before: int | None = None
        gathered: int | None = None
        for place, layer in enumerate(layers):
            waits = [before, made[place].weights_sent, made[place].weights_compute]
            if place == bottom:
                waits.append(gathered)
            before = self._compute(layer, "FWD", layer.forward, waits)
            if bottom is not None and layer.forward.operation is not None:
                sent = self._communicate(layer, "FWD", layer.forward, TemplateGroup.EVERYBODY, [before])
                gathered = sent if place == 0 else gathered
        embedding: int | None = None
        for place in range(len(layers) - 1, -1, -1):
            layer, own = layers[place], made[place]
            own.weights_compute = self._compute(
                layer, "WG", layer.weight_gradient, [before, embedding if place == 0 else None]
            )
            own.weights_sent = self._communicate(
                layer, "WG", layer.weight_gradient, TemplateGroup.EVERYBODY, [own.weights_compute]
            )
            before = own.weights_compute
            if place > 0:
                before = self._compute(layer, "IG", layer.input_gradient, [before])
            if bottom is not None and place == bottom + 1:
                embedding = self._communicate(
                    layers[0], "IG", layers[0].input_gradient, TemplateGroup.EVERYBODY, [before]
                )

    def _inputs_first(self) -> None:
        """Add a pass of model parallel and hybrid workloads: the next layer waits for activations and their
        gradients.
        """
        layers, made = self._workload.layers, self._made
        before: list[int | None] = []
        for place, layer in enumerate(layers):
            own = made[place]
            computed = self._compute(layer, "FWD", layer.forward, [*before, own.weights_sent, own.weights_compute])
            before = [computed, self._communicate(layer, "FWD", layer.forward, _model(layer), [computed])]
        for place in range(len(layers) - 1, -1, -1):
            layer, own = layers[place], made[place]
            computed = self._compute(layer, "IG", layer.input_gradient, before)
            sent = None
            if place > 0:
                sent = self._communicate(layer, "IG", layer.input_gradient, _model(layer), [computed])
            own.weights_compute = self._compute(layer, "WG", layer.weight_gradient, [computed])
            own.weights_sent = None
            if layer.kind != "MODEL":
                own.weights_sent = self._communicate(
                    layer, "WG", layer.weight_gradient, _data(layer), [own.weights_compute]
                )
            before = [own.weights_compute, sent]

    def _compute(self, layer: Layer, what: str, part: LayerPart, after: Sequence[int | None]) -> int:
        duration_ns = part.time * self._ns
        return self._add(
            TraceNode(len(self.nodes), f"{layer.name} {what}", Kind.COMPUTE, duration_ns=duration_ns), after
        )

    def _communicate(
        self, layer: Layer, what: str, part: LayerPart, role: TemplateGroup, after: Sequence[int | None]
    ) -> int | None:
        """Add a communication; None: there is nothing to send."""
        if part.operation is None or not part.size_bytes:
            return None
        node = TraceNode(
            len(self.nodes),
            f"{layer.name} {what} {part.operation.value}",
            Kind.COLLECTIVE,
            size_bytes=part.size_bytes,
            operation=part.operation,
            group=(role,),
        )
        return self._add(node, after)

    def _add(self, node: TraceNode, after: Sequence[int | None]) -> int:
        waits = tuple(dict.fromkeys(each for each in after if each is not None))
        name = f"pass {self._pass}, {node.name}"
        self.nodes.append(replace(node, after=waits, name=name))
        return node.number


def _model(layer: Layer) -> TemplateGroup:
    """Return the group of activations and their gradients."""
    if layer.kind == "MODEL":
        return TemplateGroup.EVERYBODY
    return TemplateGroup.MODEL_OUTSIDE if layer.kind == "HYBRID_DATA_MODEL" else TemplateGroup.MODEL


def _data(layer: Layer) -> TemplateGroup:
    """Return the group of weights' gradients."""
    if layer.kind == "DATA":
        return TemplateGroup.EVERYBODY
    return TemplateGroup.DATA_INSIDE if layer.kind == "HYBRID_DATA_MODEL" else TemplateGroup.DATA
