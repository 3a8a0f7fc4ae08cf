"""What PyTorch's ExecutionTraceObserver writes: operators with their tensors, and which of them called which."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradbed.hosts.systems.training.traces.chakra.records import BrokenFile

TENSOR_PARTS = 6
"""Tensor, storage, offset, number of values, bytes of each, device."""


@dataclass(frozen=True)
class Tensor:
    """storage: numbered by the observer; tensors of one storage share memory."""

    storage: int
    size_bytes: int


@dataclass(frozen=True, eq=False)
class Operator:
    """record: its number in the profiler's time line. schema: empty for what is no operator, but an annotation or a
    step of the autograd engine. start_us: None if the time line has it not."""

    number: int
    name: str
    caller: int
    record: int
    schema: str
    inputs: list[Any]
    outputs: list[Any]
    start_us: float | None
    duration_us: float

    @cached_property
    def storages(self) -> frozenset[int]:
        return frozenset(tensor.storage for tensor in tensors([self.inputs, self.outputs]))

    def argument(self, name: str) -> Any:
        """An input by its name in the schema; None if there is none."""
        names = _parameters(self.schema)
        return self.inputs[names.index(name)] if name in names and names.index(name) < len(self.inputs) else None


def _parameters(schema: str) -> list[str]:
    """Names of "space::name(Type[] first, Type second=1) -> ..."."""
    start, stop = schema.find("("), schema.find(") ->")
    return re.findall(r"([A-Za-z_]\w*)(?:=[^,]*)?(?:,|$)", schema[start + 1 : stop]) if 0 <= start < stop else []


def tensors(value: Any) -> Iterator[Tensor]:
    """Those in a value of the observer, at any depth."""
    if not isinstance(value, list):
        return
    if len(value) == TENSOR_PARTS and isinstance(value[-1], str) and all(type(each) is int for each in value[:-1]):
        _, storage, _, values, value_bytes, _ = value
        yield Tensor(storage, values * value_bytes)
        return
    for each in value:
        yield from tensors(each)


class Operators:
    """Of one rank, by number."""

    def __init__(self, observed: Path, timeline: Path | None) -> None:
        """timeline: of the profiler, in Chrome's format. BrokenFile; OSError if a file cannot be read."""
        times = _times(_json(timeline)) if timeline else {}
        nodes = _json(observed).get("nodes")
        if not isinstance(nodes, list):
            raise BrokenFile("it is no execution trace of PyTorch: it has no list of nodes")
        self._all: dict[int, Operator] = {}
        for place, node in enumerate(nodes):
            try:
                made = _operator(node, times)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise BrokenFile(f"node {place} of the file is no node of an execution trace of PyTorch") from None
            self._all[made.number] = made
        self._called: dict[int, list[Operator]] = defaultdict(list)
        for number in sorted(self._all):
            self._called[self._all[number].caller].append(self._all[number])

    def roots(self) -> list[Operator]:
        """Those that no other called."""
        return [each for each in self._all.values() if each.caller not in self._all or each.caller == each.number]

    def called(self, by: Operator) -> list[Operator]:
        return [each for each in self._called[by.number] if each is not by]

    def inside(self, of: Operator) -> Iterator[Operator]:
        """It, and all that were called until it ended, callers first."""
        waiting = [of]
        while waiting:
            each = waiting.pop()
            yield each
            waiting += reversed(self.called(each))

    def callers(self, of: Operator) -> Iterator[Operator]:
        """From the nearest on; each once, even in a file where they are a circle."""
        seen = {of.number}
        while of.caller in self._all and of.caller not in seen:
            of = self._all[of.caller]
            seen.add(of.number)
            yield of


def _json(file: Path) -> Mapping[str, Any]:
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BrokenFile(f"{file.name} is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise BrokenFile(f"{file.name} is no JSON object")
    return read


def _times(timeline: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    """Record -> when it began and how long it took, in microseconds. BrokenFile."""
    found = {}
    try:
        for event in timeline.get("traceEvents", ()):
            record = event.get("args", {}).get("Record function id")
            if record and event.get("ph") == "X":
                found[int(record)] = (float(event["ts"]), float(event["dur"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BrokenFile("its time line is none of PyTorch's profiler") from None
    return found


def _operator(node: Mapping[str, Any], times: Mapping[int, tuple[float, float]]) -> Operator:
    attributes = {each["name"]: each["value"] for each in node["attrs"]}
    record = int(attributes.get("rf_id", 0))
    start_us, duration_us = times.get(record, (None, 0.0))
    return Operator(
        number=int(node["id"]),
        name=str(node["name"]),
        caller=int(node["ctrl_deps"]),
        record=record,
        schema=str(attributes.get("op_schema", "")),
        inputs=list(node["inputs"]["values"]),
        outputs=list(node["outputs"]["values"]),
        start_us=start_us,
        duration_us=duration_us,
    )
