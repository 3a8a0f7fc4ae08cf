"""What ran: configuration, command, versions, machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from gradbed.experiments.records.results import clock_words
from gradbed.experiments.study.definition.expansion import with_values
from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.study.report.tables import HtmlTable, plain_table
from gradbed.experiments.tables.words import value_words

LEFT_OUT = object()


def facts(run: Run) -> list[tuple[str, str]]:
    """Name and value, in the order of reading; what an older run did not write down is left out."""
    newest = run.environments[-1] if run.environments else {}
    seeds = sorted({point["seed"] for point in run.resolved["points"]})
    found = [
        ("command", newest.get("command")),
        ("system", run.resolved["system"]),
        ("began", newest.get("started") or run.stamp),
        ("seeds" if len(seeds) > 1 else "seed", ", ".join(map(str, seeds))),
        ("clock", "; ".join(clock_words(point.row for point in run.points)) or None),
        ("form", "quick" if run.resolved.get("quick") else None),
        ("gone on with", f"{len(run.environments) - 1} times" if len(run.environments) > 1 else None),
        ("gradbed", _version(newest)),
        ("sources", run.resolved.get("sources")),
        ("machine", _machine(newest)),
        ("kernel", newest.get("kernel")),
        ("Python", newest.get("python")),
        ("libraries", ", ".join(f"{k} {v}" for k, v in (newest.get("libraries") or {}).items() if v) or None),
    ]
    return [(name, str(value)) for name, value in found if value]


def _version(environment: Mapping[str, Any]) -> str | None:
    version, revision = environment.get("gradbed"), environment.get("revision")
    return f"{version} (revision {revision})" if version and revision else version


def _machine(environment: Mapping[str, Any]) -> str | None:
    if "processors" not in environment:
        return None
    memory = f", {environment['memory_bytes'] / 2**30:.1f} GiB of memory" if environment.get("memory_bytes") else ""
    return f"{environment['processors']} x {environment.get('processor', environment.get('machine'))}{memory}"


def changed(run: Run) -> HtmlTable | None:
    """What all points share that is not as by default, and what is swept."""
    configurations = [dict(flat(point["configuration"])) for point in run.resolved["points"]]
    if not configurations:
        return None
    default = _defaults(run)
    swept = {**run.resolved["sweep"]["product"], **run.resolved["sweep"]["zip"]}
    rows: list[tuple[str, str, str]] = [
        (path, ", ".join(map(value_words, values)), "swept") for path, values in swept.items()
    ]
    for path in chosen(run):
        usual = value_words(default[path]) if path in default else ""
        rows.append((path, value_words(configurations[0][path]), usual))
    return plain_table("Configuration that differs from the defaults", ("field", "value", "default"), rows)


def chosen(run: Run) -> list[str]:
    """Paths of what all points share, and is not as by default."""
    default = _defaults(run)
    swept = (*run.resolved["sweep"]["product"], *run.resolved["sweep"]["zip"])
    first, *others = (dict(flat(point["configuration"])) for point in run.resolved["points"])
    return [
        path
        for path, value in first.items()
        if value != default.get(path, LEFT_OUT)
        and all(each.get(path, LEFT_OUT) == value for each in others)
        and not any(f"{path}.".startswith(f"{axis}.") for axis in swept)
    ]


def _defaults(run: Run) -> dict[str, Any]:
    """By dotted path: of a study file what a study has by default, else what `gradbed run NAME` has."""
    if run.system is None:
        return {}
    said = {} if (run.folder / "study.yaml").exists() else run.system.defaults
    try:
        return dict(flat(run.system.configuration.model_validate(with_values({}, said)).model_dump(mode="json")))
    except ValidationError:
        return {}  # it has fields without a default


def flat(values: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and values of a configuration."""
    for name, value in values.items():
        path = f"{place}{name}"
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{path}.")
        else:
            yield path, value
