"""The lists of mutants: one text of one file replaced by another, and the tests that must fail then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent


class Mutant(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file: str
    replace: str = Field(min_length=1)
    by: str
    tests: list[str] = Field(min_length=1)
    lives: str = ""
    """Why no test can tell it from the original; empty: one must."""
    mistake: str = ""
    """What goes wrong with it, for the table of docs/testing.md; empty: the table leaves it out."""
    run: dict[str, Any] = Field(default_factory=dict)
    """The system and sections of the configuration of a run on the virtual clock that finds itself wrong with it."""

    def mutated(self, root: Path = ROOT) -> str:
        """The file's text with the mistake in it. ValueError if the text to be replaced does not stand there once."""
        text = (root / self.file).read_text(encoding="utf-8")
        if (count := text.count(self.replace)) != 1:
            raise ValueError(f"{self.file} has {self.replace!r} {count} times, not once")
        return text.replace(self.replace, self.by)


def lists() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def mutants_of(name: str) -> list[Mutant]:
    entries = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return [Mutant.model_validate(entry) for entry in entries]
