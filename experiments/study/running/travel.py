"""A point on its way to another machine and back, without a folder that both see: files that its configuration names
go with it, and all that it left behind comes back with its result."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.common.scratch import LOCK, scratch_folder
from gradbed.experiments.configuration.point import PointConfiguration
from gradbed.experiments.records.run_files import CAPTURES
from gradbed.experiments.study.running.attempt import Outcome, attempt_plain, from_plain
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.systems import find_system
from gradbed.topo.files import is_topology_file


@dataclass(frozen=True)
class Parcel:
    """What a worker gets. files: contents by absolute name, as they are where the order comes from."""

    order: PointOrder
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Answer:
    """outcome: as plain values. files: what the point's folder holds, by name in it."""

    outcome: dict[str, Any]
    files: Mapping[str, bytes]


def pack(order: PointOrder) -> Parcel:
    """The order with every file that a run of it reads. UserError if one cannot be read."""
    configuration = find_system(order.system).configuration.model_validate(order.configuration)
    return Parcel(order, dict(_contents(configuration)))


def _contents(configuration: PointConfiguration) -> Iterator[tuple[str, bytes]]:
    for path in configuration.files():
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        # Files may be looked for beside the name that they were given, or beside where a link leads.
        for name in {os.path.abspath(path), os.path.realpath(path)}:
            yield name, content


def unpack_and_run(parcel: Parcel) -> Answer:
    """On the worker, in a folder that is gone afterwards."""
    with scratch_folder("point") as folder:
        root = folder / "files"
        for name, content in parcel.files.items():
            place = _below(root, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        results = folder / "results"
        moved = _moved(parcel.order.configuration, parcel.files, root)
        outcome = attempt_plain(replace(parcel.order, configuration=moved, folder=results))
        # People know their files by the names that they have at home.
        home = json.loads(json.dumps(outcome).replace(json.dumps(str(root))[1:-1], ""))
        return Answer(home, dict(_left_in(results, str(root).encode())))


def _left_in(folder: Path, root: bytes) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != LOCK:
            name, content = path.relative_to(folder), path.read_bytes()
            yield name.as_posix(), content if name.parts[0] == CAPTURES else content.replace(root, b"")


def take_in(answer: Answer, folder: Path) -> Outcome:
    """Back home, into the point's folder."""
    for name, content in answer.files.items():
        place = _below(folder, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return from_plain(answer.outcome)


def _below(folder: Path, name: str) -> Path:
    """ValueError for a name that leads out of the folder."""
    place = folder / name.lstrip("/")
    if ".." in place.relative_to(folder).parts:
        raise ValueError(f"{name} leads out of its folder")
    return place


def _moved(value: Any, names: Iterable[str], root: Path) -> Any:
    """The configuration, with every name of one of these files, or of a folder or beginning of some, leading to the
    copies below root."""
    if isinstance(value, Mapping):
        return {key: _moved(each, names, root) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_moved(each, names, root) for each in value]
    if isinstance(value, str):
        # What a network's file names is looked for around where links lead.
        name = os.path.realpath(value.strip()) if is_topology_file(value) else os.path.abspath(value)
        is_beginning = os.path.isabs(value) and any(each.startswith((f"{name}/", f"{name}.")) for each in names)
        if name in names or is_beginning:
            return str(_below(root, name))
    return value
