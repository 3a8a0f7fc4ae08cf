"""What all nodes of the syntax tree have, and annotations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Node:
    loc: int
    end: int


@dataclass(slots=True, eq=False)
class Annotation(Node):
    """@name, @name(body) or, structured, @name[body]; `body` is its tokens' texts, None if there is none."""

    name: str
    body: list[str] | None
    structured: bool = False

    def string(self) -> str | None:
        """The argument, if it is one string."""
        if self.body and all(part.startswith('"') for part in self.body):
            return "".join(unquote(part) for part in self.body)
        return None

    def __str__(self) -> str:
        """As p4c writes it: with a blank between any two tokens, and without empty parentheses."""
        return f"@{self.name}({' '.join(self.body)})" if self.body else f"@{self.name}"


def unquote(literal: str) -> str:
    """The text of a string literal."""
    return literal[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def find_annotation(annotations: list[Annotation], name: str) -> Annotation | None:
    return next((item for item in annotations if item.name == name), None)


@dataclass(slots=True, eq=False)
class Statement(Node):
    pass


@dataclass(slots=True, eq=False)
class Declaration(Statement):
    annotations: list[Annotation]
    name: str
    name_loc: int
