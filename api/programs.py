"""P4 programs with what their tables hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError


@dataclass(frozen=True)
class Program:
    """A P4_16 program for v1model, and the entries of its tables.

    Attributes:
        path: The program. A file entries.yaml beside it fills its tables, where nothing else is given.
        entries: A file of entries, or several (.yaml, .py, .json, .txt), or what a YAML file would say, as a mapping:
            {"tables": {"routes": [{"routes": "shortest", ...}]}} (docs/entries.md).
        macros: Definitions for the preprocessor, by name.
    """

    path: str | Path
    entries: Mapping[str, Any] | str | Path | tuple[str | Path, ...] = ()
    macros: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not Path(self.path).is_file():
            raise UserError(f"cannot read {self.path}: there is no such file")

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of entries."""
        if isinstance(self.entries, Mapping):
            import yaml

            return (kept_text("entries", yaml.safe_dump(dict(self.entries), sort_keys=False), ".yaml"),)
        given = (self.entries,) if isinstance(self.entries, (str, Path)) else tuple(self.entries)
        return tuple(Path(each).absolute() for each in given)

    @property
    def section(self) -> dict[str, Any]:
        """The section `program` of a study of the system workload."""
        found: dict[str, Any] = {"path": str(Path(self.path).absolute())}
        if self.files:
            found["entries"] = [str(each) for each in self.files]
        if self.macros:
            found["macros"] = [f"{name}={value}" for name, value in self.macros.items()]
        return found


def as_program(given: Program | str | Path) -> Program:
    """Return a program; of a path, that program with the entries beside it."""
    return given if isinstance(given, Program) else Program(given)


def kept_text(kind: str, text: str, suffix: str) -> Path:
    """Return a file with this text, made if it does not exist: studies take files where programs have values."""
    from gradbed.common.store import cache_dir, digest_of, make_cache_folder

    path = cache_dir() / kind / f"{digest_of([text])}{suffix}"
    if not path.exists():
        make_cache_folder(path.parent)
        scratch = path.with_name(f".{path.name}")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    return path
