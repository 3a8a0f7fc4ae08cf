"""Base classes of the syntax tree, and annotations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Node:
    """A node of the syntax tree."""

    loc: int
    """Position of the first character (see source.py)."""
    end: int
    """Position after the last character."""


@dataclass(slots=True, eq=False)
class Annotation(Node):
    """An annotation: @name, @name(body) or @name[body] (P4_16 1.2.5, section 20)."""

    name: str
    body: list[str] | None
    """Texts of its tokens; None without parentheses."""
    structured: bool = False
    """Whether it is @name[body]."""

    def string(self) -> str | None:
        """Return the argument if it is one string."""
        if self.body and all(part.startswith('"') for part in self.body):
            return "".join(unquote(part) for part in self.body)
        return None

    def __str__(self) -> str:
        """Return the annotation as p4c writes it: blanks between all tokens, no empty parentheses."""
        return f"@{self.name}({' '.join(self.body)})" if self.body else f"@{self.name}"


def unquote(literal: str) -> str:
    """Return the text of a string literal."""
    return literal[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def find_annotation(annotations: list[Annotation], name: str) -> Annotation | None:
    """Return the first annotation of this name, if there is one."""
    return next((item for item in annotations if item.name == name), None)


@dataclass(slots=True, eq=False)
class Statement(Node):
    pass


@dataclass(slots=True, eq=False)
class Declaration(Statement):
    annotations: list[Annotation]
    name: str
    name_loc: int
