"""The tables of defaults and of metrics in docs/experiments.md say what the models say."""

from __future__ import annotations

import re
from pathlib import Path

from gradbed.controller.systems.aggregation.service import AggregationSettings
from gradbed.experiments.configuration.options import model_options
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.hosts.collectives.job import CollectiveJob

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "experiments.md"


def table() -> list[str]:
    """A row for each value: key in a study, option, default, what `run` takes where that differs."""
    system = find_system(DEFAULT_SYSTEM)
    rows = []
    for option in model_options(system.configuration, {}):
        path = ".".join(option.path)
        own = _shown(system.options.defaults[path]) if path in system.options.defaults else ""
        rows.append(
            f"| `{path}` | `{option.flag}` | {_shown(option.default)} | {'' if own is None else _shown(own)} |"
        )
    return rows


def _shown(value: object) -> str:
    if value is None or value == ():
        return "(not set)"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def test_the_table_of_defaults_is_that_of_the_models() -> None:
    section = DOCUMENT.read_text().partition("## Defaults\n")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| `")] == table()


def test_the_table_of_metrics_has_every_metric_and_says_what_it_is() -> None:
    section = DOCUMENT.read_text().partition("## Sections of the system `aggregation`\n")[2].partition("\n## ")[0]
    lines = section.partition("| metric | what it is |\n")[2].partition("\n\n")[0].splitlines()[1:]
    cells = [re.fullmatch(r"\| (.+?) \| *(.*?) *\|", line) for line in lines]
    found = [(name, cell[2]) for cell in cells if cell for name in re.findall("`(.+?)`", cell[1])]
    assert sorted(name for name, _ in found) == sorted(find_system(DEFAULT_SYSTEM).metrics)
    assert all(words for _, words in found)


def test_agents_and_controller_have_the_same_defaults() -> None:
    system = find_system(DEFAULT_SYSTEM)
    studies = {option.path[-1]: option.default for option in model_options(system.configuration, {})}
    agents = {name: field.default for name, field in CollectiveJob.model_fields.items()}
    agents = {name: agents[name] for name in ("lanes", "window_fragments", "congestion_control", "min_timeout_us")}
    assert agents == {name: studies[name] for name in agents}
    assert AggregationSettings().slots == studies["slots"]
