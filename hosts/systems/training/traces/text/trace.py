"""Text workloads as traces: every rank does the same, with ranks of its own groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.execution import Kind, Node
from gradbed.hosts.systems.training.traces.graph import RankGraph, graph_of
from gradbed.hosts.systems.training.traces.settings import TraceSettings
from gradbed.hosts.systems.training.traces.text.workload import Layer, Part, Workload, read_workload
from gradbed.hosts.systems.training.traces.trace import Trace

NS = {"ns": 1, "us": 1000}


class Role(IntEnum):
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
        groups = tuple(self._group(Role(role), rank) for (role,) in self._template.groups)
        return replace(self._template, groups=groups)

    def _group(self, role: Role, rank: int) -> tuple[int, ...]:
        if role is Role.EVERYBODY or not self._grouped:
            return ()
        inside = self._model_ranks if role in (Role.MODEL, Role.DATA) else self.ranks // self._model_ranks
        if role in (Role.MODEL, Role.DATA_INSIDE):
            first = rank // inside * inside
            group = tuple(range(first, first + inside))
        else:
            group = tuple(range(rank % inside, self.ranks, inside))
        return () if len(group) == self.ranks else group


@dataclass
class _Made:
    """Of a layer in the pass before: its last nodes, if it had them."""

    weights_compute: int | None = None
    weights_sent: int | None = None


class _Passes:
    """The nodes of a workload, pass after pass."""

    def __init__(self, workload: Workload, ns: int) -> None:
        """ns: in a unit of the file's times."""
        self._workload = workload
        self._ns = ns
        self.nodes: list[Node] = []
        self._made = [_Made() for _ in workload.layers]
        self._pass = 0

    def add(self) -> None:
        """One more pass."""
        kind = self._workload.kind
        if kind == "MICRO":
            for layer in self._workload.layers:
                self._communicate(layer, "WG", layer.weight_gradient, Role.EVERYBODY, ())
        elif kind == "DATA" or kind.startswith("HYBRID_DLRM"):
            self._weights_first()
        else:
            self._inputs_first()
        self._pass += 1

    def _weights_first(self) -> None:
        """Of data parallel workloads: only weights' gradients are exchanged, beside all else; and of DLRM, which has
        all-to-alls of its embeddings as well (layer 0)."""
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
                sent = self._communicate(layer, "FWD", layer.forward, Role.EVERYBODY, [before])
                gathered = sent if place == 0 else gathered
        embedding: int | None = None
        for place in range(len(layers) - 1, -1, -1):
            layer, own = layers[place], made[place]
            own.weights_compute = self._compute(
                layer, "WG", layer.weight_gradient, [before, embedding if place == 0 else None]
            )
            own.weights_sent = self._communicate(
                layer, "WG", layer.weight_gradient, Role.EVERYBODY, [own.weights_compute]
            )
            before = own.weights_compute
            if place > 0:
                before = self._compute(layer, "IG", layer.input_gradient, [before])
            if bottom is not None and place == bottom + 1:
                embedding = self._communicate(layers[0], "IG", layers[0].input_gradient, Role.EVERYBODY, [before])

    def _inputs_first(self) -> None:
        """Of model parallel and hybrid workloads: the next layer waits for activations and their gradients."""
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

    def _compute(self, layer: Layer, what: str, part: Part, after: Sequence[int | None]) -> int:
        duration_ns = part.time * self._ns
        return self._add(Node(len(self.nodes), f"{layer.name} {what}", Kind.COMPUTE, duration_ns=duration_ns), after)

    def _communicate(
        self, layer: Layer, what: str, part: Part, role: Role, after: Sequence[int | None]
    ) -> int | None:
        """None: there is nothing to send."""
        if part.operation is None or not part.size_bytes:
            return None
        node = Node(
            len(self.nodes),
            f"{layer.name} {what} {part.operation.value}",
            Kind.COLLECTIVE,
            size_bytes=part.size_bytes,
            operation=part.operation,
            group=(role,),
        )
        return self._add(node, after)

    def _add(self, node: Node, after: Sequence[int | None]) -> int:
        waits = tuple(dict.fromkeys(each for each in after if each is not None))
        name = f"pass {self._pass}, {node.name}"
        self.nodes.append(replace(node, after=waits, name=name))
        return node.number


def _model(layer: Layer) -> Role:
    """Of activations and their gradients."""
    if layer.kind == "MODEL":
        return Role.EVERYBODY
    return Role.MODEL_OUTSIDE if layer.kind == "HYBRID_DATA_MODEL" else Role.MODEL


def _data(layer: Layer) -> Role:
    """Of weights' gradients."""
    if layer.kind == "DATA":
        return Role.EVERYBODY
    return Role.DATA_INSIDE if layer.kind == "HYBRID_DATA_MODEL" else Role.DATA
