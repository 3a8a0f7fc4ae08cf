"""Load a study from text, and check it; every error is one line with its place."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError, suggestion
from gradbed.common.problems import in_words
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.study.definition import (
    FigureSection,
    Study,
    StudyHead,
    TrialSpec,
    expand,
    values_at,
    with_values,
)
from gradbed.experiments.study.evaluation.figures import kinds
from gradbed.experiments.study.evaluation.kinds import panels_of
from gradbed.experiments.study.yaml_text import GivenValues, Place, YamlDocument, read_yaml
from gradbed.experiments.system import System
from gradbed.experiments.systems import find_system

# ---- Keys that a model knows ----


def known_keys(model: type[BaseModel], place: Sequence[str | int], data: Mapping[str, Any]) -> list[str]:
    """The keys of the mapping at `place`; of all members of a union whose `kind` fits the data."""
    models = [model]
    value: Any = data
    for part in place:
        value = value[part]
        following: list[type[BaseModel]] = []
        for candidate in models:
            field = candidate.model_fields.get(str(part))
            following += _models(field.annotation) if field else _values_of_mappings(candidate)
        models = following
    kind = value.get("kind") if isinstance(value, dict) else None
    fitting = [m for m in models if kind is not None and kind in _kinds(m)] or models
    return list(dict.fromkeys(key for m in fitting for key in m.model_fields))


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, UnionType, Annotated, dict, list, tuple):
        return [model for argument in get_args(annotation) for model in _models(argument)]
    return []


def _values_of_mappings(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A key of a dict[str, Model] was passed: the model itself is what stands there."""
    return [model]


def _kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    field = model.model_fields.get("kind")
    return get_args(field.annotation) if field else ()


# ---- Loading ----


POINT_COLUMNS = ("seed", "repetition", "verdict", "scale_factor", "link_rate_bps")
"""Columns of the trials table besides coordinates and metrics."""


def load_study(path: Path, quick: bool = False, clock: str | None = None) -> Study:
    """Read, resolve and check a study; `quick` applies its quick section, `clock` takes the place of its own. Either
    leaves out what its real_time section asks for; the virtual clock also what a sweep puts on the real one.

    Every trial is validated now, so that a sweep does not end in the middle because of a value. StudyError, one
    line with FILE:LINE, for the first thing that is wrong.
    """
    return study_of(read_yaml(path), quick, clock)


def study_of(document: YamlDocument, quick: bool = False, clock: str | None = None) -> Study:
    """Return the study of a text that is read already, or of values that a program gives; else as load_study."""
    data: Mapping[str, Any] = document.data
    if quick:
        data, origins = _made_small(document)
        document = replace(document, origins=origins)
    if clock is not None:
        data = {**data, "clock": clock}
    if "system" not in data:
        raise document.error((), "which system? write for example 'system: aggregation'")
    try:
        system = find_system(str(data["system"]))
    except UserError as error:
        raise document.error(("system",), str(error)) from None
    sections = StudyHead.model_fields
    base = {key: value for key, value in data.items() if key not in sections}
    for key in base:
        if key not in system.configuration.model_fields:
            hint = suggestion(key, [*sections, *system.configuration.model_fields])
            raise document.error((key,), f"a study has no section {key!r}{hint}")
    head = _checked_head({key: value for key, value in data.items() if key in sections}, document)
    trials = _trials(document, head, system, base, clock)
    if head.real_time is not None and not quick and clock is None:
        trials += in_real_time(head.name, trials, head.real_time.share)
    _check_names(document, head, system)
    return Study(head, system, quick, None if isinstance(document, GivenValues) else document.path, trials)


def _trials(
    document: YamlDocument, head: StudyHead, system: System, base: Mapping[str, Any], clock: str | None
) -> tuple[TrialSpec, ...]:
    trials = []
    for combination in expand(head.sweep):
        try:
            data = with_values(base, combination)
        except KeyError as error:
            place = _axis(head, error.args[1])
            raise document.error(place, f"{error.args[1]}: {error.args[0]} is not a section") from None
        if clock == "virtual" and data["clock"] == "real":
            continue  # it needs the kernel
        if clock is not None:
            data = {**data, "clock": clock}
        configuration = _configuration(document, head, system, data, combination)
        coordinates = values_at(configuration.model_dump(mode="json"), combination)
        # Without chance all repetitions would be the same.
        seeds = head.seed_of_repetition if configuration.canonical().chance() else head.seed_of_repetition[:1]
        trials += [TrialSpec(coordinates, repetition, seed, configuration) for repetition, seed in enumerate(seeds)]
    return tuple(trials)


def in_real_time(name: str, trials: Sequence[TrialSpec], share: float) -> tuple[TrialSpec, ...]:
    """Return a share of the trials on the virtual clock, to be repeated on the real one.

    Trials that mean the same count once.
    """
    distinct = {
        (repr(trial.configuration.canonical()), trial.seed): trial
        for trial in reversed(trials)
        if trial.configuration.clock == "virtual"
    }
    candidates = list(reversed(distinct.values()))
    chosen = random.Random(name).sample(range(len(candidates)), math.ceil(share * len(candidates)))
    return tuple(
        replace(
            candidates[index],
            configuration=candidates[index].configuration.model_copy(update={"clock": "real"}),
            other_clock=True,
        )
        for index in sorted(chosen)
    )


def _configuration(
    document: YamlDocument, head: StudyHead, system: System, data: Mapping[str, Any], combination: Mapping[str, Any]
) -> TrialConfiguration:
    """Return the configuration of a trial; an error names the swept value that caused it, if one did."""
    try:
        configuration = system.configuration.model_validate(data, context={"folder": document.path.absolute().parent})
    except ValidationError as error:
        place, message = _mistake(error, system.configuration, data)
        dotted = ".".join(map(str, place))
        blamed = [path for path in combination if f"{dotted}.".startswith(f"{path}.") or path == dotted]
        raise document.error(_axis(head, blamed[0]) if blamed else place, message) from None
    try:
        check_switch_programs(configuration)
        system.check(configuration)
    except (ValueError, UserError) as error:
        said = ", ".join(f"{path} = {value}" for path, value in combination.items())
        place = _axis(head, list(combination)[-1]) if combination else ()
        raise document.error(place, f"{said + ': ' if said else ''}{error}") from None
    return configuration


def _axis(head: StudyHead, path: str) -> Place:
    """Return the place of a swept path in the text."""
    return ("sweep", "product" if path in head.sweep.product else "zip", path)


def _made_small(document: YamlDocument) -> tuple[dict[str, Any], Mapping[Place, Place]]:
    """The study with its quick section on top, and where in that section the values that it changed stand."""
    changes = document.data.get("quick") or {}
    if not isinstance(changes, dict):
        raise document.error(("quick",), "quick is a mapping: sections or dotted paths, and what they become")
    merged = dict(document.data)
    origins: dict[Place, Place] = {}
    for key, change in changes.items():
        section, *rest = key.split(".")
        if section in ("name", "system", "quick"):
            raise document.error(("quick", key), f"quick cannot change {section!r}")
        _note_origins(change, (section, *rest), ("quick", key), origins)
        for part in reversed(rest):
            change = {part: change}
        merged[section] = _merged(merged.get(section), change)
    return merged, origins


def _note_origins(change: Any, place: Place, origin: Place, origins: dict[Place, Place]) -> None:
    origins[place] = origin
    if isinstance(change, dict):
        for key, value in change.items():
            _note_origins(value, (*place, key), (*origin, key), origins)


def _merged(old: Any, new: Any) -> Any:
    """`new` on top of `old`: mappings key by key, everything else replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return new


def _checked_head(data: Mapping[str, Any], document: YamlDocument) -> StudyHead:
    try:
        return StudyHead.model_validate(data)
    except ValidationError as error:
        place, message = _mistake(error, StudyHead, data)
        raise document.error(place, message) from None


def _mistake(error: ValidationError, model: type[BaseModel], data: Mapping[str, Any]) -> tuple[Place, str]:
    """Return the place of the first mistake, and a message of one line."""
    first = error.errors(include_url=False)[0]
    kind = first["type"]
    place = _in_data(first["loc"], data, kind == "missing")
    message = in_words(first)
    named = place
    if kind == "extra_forbidden":
        hint = suggestion(str(place[-1]), known_keys(model, place[:-1], data))
        message, named = f"there is no {str(place[-1])!r} here{hint}", place[:-1]
    elif kind not in ("missing", "union_tag_invalid", "union_tag_not_found", "value_error"):
        message = f"{message}, got {first['input']!r}"
    return place, f"{'.'.join(map(str, named))}: {message}" if named else message


def _in_data(loc: Sequence[str | int], data: Any, missing: bool) -> Place:
    """A location of pydantic without the tags of unions, which are not in the data."""
    place: Place = ()
    for index, part in enumerate(loc):
        inside = isinstance(data, dict) and part in data
        inside = inside or (isinstance(data, list) and isinstance(part, int) and part < len(data))
        if inside:
            data = data[part]
            place = (*place, part)
        elif missing and index == len(loc) - 1:
            place = (*place, part)
    return place


def _check_names(document: YamlDocument, head: StudyHead, system: System) -> None:
    """Metrics and figures name what there is."""
    for index, name in enumerate(head.metrics):
        if name not in system.metrics:
            raise document.error(
                ("metrics", index), f"{head.system} has no metric {name!r}{suggestion(name, system.metrics)}"
            )
    if head.compare is not None:
        _check_swept(document, ("compare",), head.compare, head)
    for name, goal in head.goals.items():
        for field in ("metric", "over"):
            _check_column(document, ("goals", name, field), getattr(goal, field), system)
        for path in goal.where:
            _check_swept(document, ("goals", name, "where", path), path, head)
        if goal.in_real_time and head.real_time is None:
            raise document.error(
                ("goals", name, "in_real_time"),
                "which trials are repeated in real time? write 'real_time: {share: 1}'",
            )
    for figure, section in head.figures.items():
        place = "figures", figure
        if section.kind not in kinds():
            raise document.error(
                (*place, "kind"), f"there is no kind of figure {section.kind!r}{suggestion(section.kind, kinds())}"
            )
        try:
            panels = panels_of(section)
        except ValueError as error:
            raise document.error((*place, "panels"), f"a panel cannot be: {error}") from None
        for panel in panels:
            _check_columns(document, place, panel, head, system)


def _check_columns(
    document: YamlDocument, place: Place, section: FigureSection, head: StudyHead, system: System
) -> None:
    is_distribution = section.kind == "distribution"
    for field in ("series",) if is_distribution else ("x", "series"):
        path = getattr(section, field)
        if path is not None:
            _check_swept(document, (*place, field), path, head)
    shown = section.y or section.x
    if section.table is None:  # of a further table nobody knows the columns before it is there
        _check_column(document, (*place, "x" if is_distribution else "y"), shown, system)
    for field in ("bound", "expected", "saturation"):
        _check_column(document, (*place, field), getattr(section, field), system)
    metric = None if section.table else system.metrics.get(shown)
    if section.normalised and (metric is None or metric.scales is None):
        raise document.error(
            (*place, "normalised"), f"{shown} does not depend on the link rate, so it has no such form"
        )


def _check_column(document: YamlDocument, place: Place, column: str | None, system: System) -> None:
    columns = [*system.metrics, *POINT_COLUMNS]
    if column is not None and column not in columns:
        raise document.error(place, f"there is no metric {column!r}{suggestion(column, columns)}")


def _check_swept(document: YamlDocument, place: Place, path: str, head: StudyHead) -> None:
    if path not in head.sweep.paths:
        hint = suggestion(path, head.sweep.paths) if head.sweep.paths else ""
        raise document.error(place, f"{path} is not swept{hint}")


# ---- BMv2 and p4c ----


def check_switch_programs(configuration: TrialConfiguration) -> None:
    """UserError where what is to compile or run the P4 programs is missing, or cannot do it."""
    program = configuration.program
    if program.compiler == "p4c":
        from gradbed.switch.p4lang.p4c import require_p4c

        require_p4c()
    if program.model == "bmv2":
        from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

        REAL_CLOCK.require(configuration.clock == "real", "--switch: bmv2", "--switch gradbed")
        find_simple_switch_grpc()


def suited_to_bmv2(system: System, values: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The values of a configuration, nested, with what BMv2 cannot do left out, which is said on standard error.

    given: what the user has chosen, as names of parameters; it stays, and is refused where BMv2 cannot do it.
    UserError without BMv2.
    """
    from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

    if "clock" in given and values.get("clock") == "virtual":
        return dict(values)  # refused in a moment (check_switch_programs)
    find_simple_switch_grpc()
    wanted: dict[str, tuple[Any, str]] = {"clock": ("real", "BMv2 has no other")}
    wanted |= {path: (value, "BMv2 cannot do otherwise") for path, value in system.options.bmv2_defaults.items()}
    changed = with_values(values, {})
    for path, (value, why) in wanted.items():
        if path.replace(".", "__") in given or _at(system.configuration.model_validate(values), path) == value:
            continue
        changed = with_values(changed, {path: value})
        flag = path.rpartition(".")[2].replace("_", "-")
        print(f"gradbed: --switch bmv2: taking --{flag} {value} ({why})", file=sys.stderr)
    return changed


def _at(values: Any, path: str) -> Any:
    for part in path.split("."):
        values = getattr(values, part)
    return values
