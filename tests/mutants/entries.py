"""The lists of mutants: a pattern in a function replaced by something else, and the tests that must fail then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from tests.mutants.places import NotOnce, replaced

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent


class Mutant(BaseModel):
    """A mistake, and the tests that find it."""

    model_config = ConfigDict(extra="forbid")

    file: str
    function: str = ""
    """Qualified: `Class.method`, of P4 `Control.action`. Nothing: outside of functions."""
    pattern: str = Field(min_length=1)
    """What is replaced, once in the function; `$name` is any identifier (tests/mutants/places.py)."""
    by: str
    tests: list[str] = Field(min_length=1)
    lives: str = ""
    """Why no test can tell it from the original; empty: one must."""
    mistake: str = ""
    """What goes wrong with it, for the table of docs/testing.md; empty: the table leaves it out."""
    run: dict[str, Any] = Field(default_factory=dict)
    """The system and sections of the configuration of a run on the virtual clock that finds itself wrong with it."""

    def mutated(self, root: Path = ROOT) -> str:
        """Return the file's text with the mistake in it. NotOnce if the pattern is not in the function once."""
        path = root / self.file
        try:
            return replaced(path.read_text(encoding="utf-8"), path.suffix, self.function, self.pattern, self.by)
        except NotOnce as error:
            raise NotOnce(f"{self.file}: {error}") from None


def lists() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def mutants_of(name: str) -> list[Mutant]:
    entries = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return [Mutant.model_validate(entry) for entry in entries]
