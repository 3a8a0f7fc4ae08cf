"""What a page states of a run: what ran and where, what every switch was to hold, what its verdict means, and which
files it left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.planning.text import switch_text
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import clock_words
from gradbed.experiments.study.definition import with_values
from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.tables.metric import engineering, value_words
from gradbed.experiments.validity.verdict import GRAVITY, LIMITS, ValidityReport, VerdictWord

# ---- Tables for people as HTML has them ----


@dataclass(frozen=True)
class HtmlTable:
    """numbers: the columns whose cells are aligned on the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    caption: str = ""


def html_table(table: Table) -> HtmlTable:
    """The same as on a terminal."""
    columns = [[_plain(cell) for cell in column.cells] for column in table.columns]
    return HtmlTable(
        title=_plain(table.title),
        columns=[_plain(column.header) for column in table.columns],
        rows=list(zip(*columns, strict=True)),
        numbers=frozenset(n for n, column in enumerate(table.columns) if column.justify == "right"),
        caption=_plain(table.caption),
    )


def plain_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()
) -> HtmlTable:
    """Return a table of values; None is an empty cell.

    Args:
        numbers: names of columns with numbers.
    """
    shown = [["" if cell is None else str(cell) for cell in row] for row in rows]
    return HtmlTable(title, columns, shown, frozenset(n for n, name in enumerate(columns) if name in numbers))


def _plain(shown: Any) -> str:
    if shown is None:
        return ""
    return shown.plain if isinstance(shown, Text) else Text.from_markup(str(shown)).plain


# ---- What ran: configuration, command, versions, machine ----


LEFT_OUT = object()


def facts(run: Run) -> list[tuple[str, str]]:
    """Name and value, in the order of reading; what an older run did not write down is left out."""
    newest = run.environments[-1] if run.environments else {}
    seeds = sorted({trial["seed"] for trial in run.resolved["trials"]})
    found = [
        ("command", newest.get("command")),
        ("system", run.resolved["system"]),
        ("began", newest.get("started") or run.stamp),
        ("seeds" if len(seeds) > 1 else "seed", ", ".join(map(str, seeds))),
        ("clock", "; ".join(clock_words(trial.row for trial in run.trials)) or None),
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
    """Return the settings common to all trials that are not defaults, and what is swept."""
    configurations = [dict(flat(trial["configuration"])) for trial in run.resolved["trials"]]
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
    """Paths of what all trials share, and is not as by default."""
    default = _defaults(run)
    swept = (*run.resolved["sweep"]["product"], *run.resolved["sweep"]["zip"])
    first, *others = (dict(flat(trial["configuration"])) for trial in run.resolved["trials"])
    return [
        path
        for path, value in first.items()
        if value != default.get(path, LEFT_OUT)
        and all(each.get(path, LEFT_OUT) == value for each in others)
        and not any(f"{path}.".startswith(f"{axis}.") for axis in swept)
    ]


def _defaults(run: Run) -> dict[str, Any]:
    """Return defaults by dotted path: of a study file those of studies, else those of `gradbed run NAME`."""
    if run.system is None:
        return {}
    said = {} if (run.folder / "study.yaml").exists() else run.system.options.defaults
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


# ---- What every switch was to hold ----


MOST_LINES = 150
"""Of a switch in a phase; the file has all."""
MOST_CHARACTERS = 1_500_000
"""Of a page."""


@dataclass(frozen=True)
class HeldPlan:
    """phases: in which it was held, empty if in all. file: relative to the run's folder."""

    phases: Sequence[str]
    text: str
    left_out_lines: int


@dataclass(frozen=True)
class SwitchHolds:
    name: str
    tier: str
    summary: str
    plans: Sequence[HeldPlan]


@dataclass(frozen=True)
class PlanView:
    """Plan of a trial's switches."""

    digest: str
    """Digest of the trial."""
    place: str
    """Place in the sweep as text; empty if there is one place alone."""
    switches: Sequence[SwitchHolds]


def plan_view(run: Run) -> PlanView | None:
    """Return the plan of the first trial that stored one; None if none did."""
    for trial in run.trials:
        network = run.network(trial.digest)
        if network is not None and network.plans:
            break
    else:
        return None
    phases = list(network.plans)
    switches, characters = [], 0
    for switch in network.topology.switches:
        held: dict[str, list[str]] = {}
        last = None
        for phase in phases:
            if (plan := network.plans[phase].switches.get(switch.name)) is not None:
                held.setdefault(switch_text(switch.name, plan), []).append(phase)
                last = plan
        if last is None:
            continue
        plans = []
        for text, names in held.items():
            lines = text.splitlines()[1:]
            room = MOST_LINES if characters < MOST_CHARACTERS else 0
            shown = "\n".join(lines[:room])
            characters += len(shown)
            plans.append(HeldPlan([] if len(names) == len(phases) else names, shown, max(0, len(lines) - room)))
        switches.append(SwitchHolds(switch.name, switch.tier, _summary(last), plans))
    return PlanView(trial.digest, trial.place_text.removesuffix(": "), switches)


def _summary(plan: SwitchPlan) -> str:
    """Kind, program, and how much of what it holds."""
    parts = (
        (plan.flows, "flow", "flows"),
        (plan.entries, "entry", "entries"),
        (plan.groups, "group", "groups"),
        (plan.clones, "clone session", "clone sessions"),
        (plan.registers, "register cell", "register cells"),
        (plan.meters, "meter cell", "meter cells"),
        (plan.defaults, "default action", "default actions"),
    )
    counted = [f"{len(held)} {one if len(held) == 1 else many}" for held, one, many in parts if held]
    kind = "P4" if plan.kind == "p4" else "OpenFlow"
    return f"{plan.program} ({kind}): {', '.join(counted) or 'nothing'}"


# ---- What verdicts mean ----


SHORT: Mapping[VerdictWord, str] = {
    "simulated": "Simulated time: the results do not depend on the host",
    "valid": "Real time, and the host kept up",
    "unknown": "Real time; whether the host kept up is not known",
    "degraded": "Real time, and the host may have affected the results",
    "invalid": "Real time, and the host was too slow for the network",
}
"""Beside the verdict, wherever it stands alone."""

MEANING: Mapping[VerdictWord, str] = {
    "simulated": "Simulated time (virtual clock): time goes from event to event, so the results do not depend on the "
    "host. The same run gives the same results again, to the last byte. Delays of a real host are not included.",
    "valid": "Real time, and the host kept up: links sent at their rates, timers were on time, and there were "
    "processors enough. The results are those of the network.",
    "unknown": "Real time, but too little could be measured to say whether the host kept up, for example because no "
    "link has a rate.",
    "degraded": "Real time, and a measure of the host went over its first limit. The results may be affected by the "
    "host: run again with nothing else running, or at a smaller scale.",
    "invalid": "Real time, and the host was the limit, not the network. Means and figures leave such trials out. "
    "Run again at a smaller scale (--scale), or on the virtual clock.",
}


def meanings(run: Run) -> list[tuple[str, int, str]]:
    """Return each verdict, the number of its trials, and its meaning; the worst first."""
    counts = Counter(str(trial.row["verdict"]) for trial in _once(run).values())
    return [(word, counts[word], MEANING[word]) for word in reversed(GRAVITY) if counts[word]]


def reasons(run: Run) -> list[tuple[str, int]]:
    """Return the reasons for verdicts that are not valid, and the number of trials of each."""
    found: Counter[str] = Counter()
    for trial in _once(run).values():
        found.update(filter(None, str(trial.row.get("verdict_reasons") or "").split("; ")))
    return found.most_common()


def measures(run: Run) -> HtmlTable | None:
    """Return the worst measure of each rule with its limits, over trials in real time; None if there are none."""
    reports = []
    for trial in _once(run).values():
        if trial.row.get("clock") == "real":
            try:
                reports.append(ValidityReport.of_columns(trial.row).measures)
            except KeyError:
                continue  # of an older version
    if not reports:
        return None
    rows = []
    for limit in LIMITS:
        values = [value for each in reports if (value := limit.value(each)) is not None]
        factor, unit = (100, " %") if limit.unit == "%" else (1, f" {limit.unit}")
        worst = f"{factor * max(values):.3g}{unit}" if values else "not measured"
        limits = [
            "never" if bound == float("inf") else f"{factor * bound:g}{unit}"
            for bound in (limit.degraded, limit.invalid)
        ]
        rows.append((limit.what.rstrip(":"), worst, *limits))
    columns = ("measure", "worst trial", "degraded from", "invalid from")
    return plain_table("Measures of the machine", columns, rows, columns[1:])


def _once(run: Run) -> dict[str, TrialRecord]:
    return {trial.digest: trial for trial in run.trials}


# ---- What the folder holds ----


OWN = frozenset({"report.html", "report.json"})


@dataclass(frozen=True)
class FileLink:
    """A file of the run's folder."""

    path: str
    """Path relative to the folder."""
    href: str
    """The path as part of a URL."""
    size: str


@dataclass(frozen=True)
class FileGroup:
    name: str
    words: str
    files: Sequence[FileLink]


GROUPS = (
    ("What was to run", "the study, versions and machine", ("study.yaml", "study.json", "environment*.json")),
    ("Rows", "of all trials that are done; the same as CSV and as Parquet", ("*.csv", "*.parquet", "data/*.csv")),
    ("Figures", "the same as PNG, SVG and PDF", ("*.png", "*.svg", "*.pdf")),
    ("Logs", "why trials broke", ("logs/*",)),
    ("Trials", "what each found, and in its folder network, plans, logs, captures", ("trials/*.json", "trials/*/*")),
)  # fmt: skip


def file_groups(folder: Path) -> list[FileGroup]:
    """Groups without files are left out; at last whatever belongs to none."""
    seen: set[Path] = set()
    groups = []
    for name, words, patterns in GROUPS:
        found = sorted({path for pattern in patterns for path in folder.glob(pattern)} - seen)
        groups.append(_group(folder, name, words, found))
        seen.update(found)
    others = sorted(set(folder.glob("*")) - seen)
    groups.append(_group(folder, "Others", "what else the folder holds", others))
    return [group for group in groups if group.files]


def _group(folder: Path, name: str, words: str, paths: Sequence[Path]) -> FileGroup:
    return FileGroup(name, words, [_link(folder, path) for path in paths if _is_shown(path)])


def _is_shown(path: Path) -> bool:
    return path.is_file() and path.name not in OWN and not path.name.startswith(".")


def _link(folder: Path, path: Path) -> FileLink:
    relative = path.relative_to(folder).as_posix()
    return FileLink(relative, quote(relative), engineering(path.stat().st_size, "B", 3))
