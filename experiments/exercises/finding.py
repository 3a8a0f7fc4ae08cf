"""What a check found wrong, in words for the student."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Detail(NamedTuple):
    """label: a word such as "packet"; "": one more line of the label before."""

    label: str
    text: str


@dataclass(frozen=True)
class Finding:
    """what: one line."""

    what: str
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True)
class Checked:
    """One check of a solution. finding: None if it passed."""

    name: str
    finding: Finding | None


class Refusal(Exception):
    """A check's way to say what is wrong: one line, with what was expected and what came instead."""

    def __init__(self, what: str, expected: str = "", came: str = "") -> None:
        super().__init__(what)
        self.finding = Finding(
            what,
            tuple(Detail(label, text) for label, text in (("expected", expected), ("came out", came)) if text),
        )
