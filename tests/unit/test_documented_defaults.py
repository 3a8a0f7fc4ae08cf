"""The one table of defaults, in docs/experiments.md, says what the models say."""

from __future__ import annotations

from pathlib import Path

from cli.model_options import model_options
from experiments.systems import DEFAULT_SYSTEM, find_system

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "experiments.md"


def table() -> list[str]:
    """A row for each value: key in a study, option, default, what `run` takes where that differs."""
    system = find_system(DEFAULT_SYSTEM)
    rows = []
    for option in model_options(system.configuration, {}):
        path = ".".join(option.path)
        own = _shown(system.defaults[path]) if path in system.defaults else ""
        rows.append(
            f"| `{path}` | `{option.flag}` | {_shown(option.default)} | {'' if own is None else _shown(own)} |"
        )
    return rows


def _shown(value: object) -> str:
    if value is None or value == ():
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def test_the_table_of_defaults_is_that_of_the_models() -> None:
    section = DOCUMENT.read_text().partition("## Defaults\n")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| `")] == table()
