"""YAML and JSON whose every value knows where it stands, so that messages can name file, line and column.

Values stay the text that they were written as: YAML 1.1 would read some MAC addresses as numbers to base 60.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import yaml

from gradbed.common.errors import UserError, suggestion
from gradbed.common.yaml_numbers import bounded

_NULL_TAG = "tag:yaml.org,2002:null"


class EntriesError(UserError):
    """Something is wrong in a file of entries; the text begins with FILE:LINE:COLUMN."""

    prefix = ""


@dataclass(frozen=True)
class FilePosition:
    """Line and column count from 1."""

    file: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def error(self, message: str) -> EntriesError:
        return EntriesError(f"{self}: {message}")


@contextlib.contextmanager
def blamed(place: FilePosition) -> Iterator[None]:
    """Give every UserError of the block this position."""
    try:
        yield
    except EntriesError:
        raise
    except UserError as error:
        raise place.error(str(error)) from None


class Element:
    """A value of the document: a text, a list, or a mapping. What asks for one of them raises EntriesError if it is
    another."""

    def __init__(self, node: yaml.Node, file: Path) -> None:
        self._node = node
        self._file = file
        mark = node.start_mark
        self.place = FilePosition(file, mark.line + 1, mark.column + 1)

    def error(self, message: str) -> EntriesError:
        return self.place.error(message)

    def blamed(self) -> AbstractContextManager[None]:
        return blamed(self.place)

    @property
    def is_list(self) -> bool:
        return isinstance(self._node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, yaml.MappingNode)

    @property
    def is_nothing(self) -> bool:
        """The value is empty (YAML null)."""
        return isinstance(self._node, yaml.ScalarNode) and self._node.tag == _NULL_TAG

    def text(self) -> str:
        if not isinstance(self._node, yaml.ScalarNode):
            raise self.error("a single value is expected here")
        return str(self._node.value).strip()

    def items(self) -> list[Element]:
        if self.is_nothing:
            return []
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.error("a list is expected here")
        return [Element(node, self._file) for node in self._node.value]

    def pairs(self) -> list[tuple[Element, Element]]:
        """Keys and values of a mapping."""
        if self.is_nothing:
            return []
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error("a mapping is expected here, such as 'key: value'")
        found = [(Element(key, self._file), Element(value, self._file)) for key, value in self._node.value]
        seen: set[str] = set()
        for key, _ in found:
            if key.text() in seen:
                raise key.error(f"{key.text()!r} is given twice")
            seen.add(key.text())
        return found

    def fields(self, known: Collection[str], required: Collection[str] = ()) -> dict[str, Element]:
        """Return the values of a mapping, all of whose keys must be known."""
        found = {}
        for key, value in self.pairs():
            if key.text() not in known:
                raise key.error(f"there is no {key.text()!r} here{suggestion(key.text(), list(known))}")
            found[key.text()] = value
        for name in required:
            if name not in found:
                raise self.error(f"{name} is missing")
        return found

    def known_fields(self, known: Collection[str], required: Collection[str] = ()) -> dict[str, Element]:
        """Return the values of a mapping; unknown keys are passed over unless they look misspelled."""
        own = {key.text() for key, _ in self.pairs() if not get_close_matches(key.text(), known, n=1)}
        found = self.fields({*known, *own}, required)
        return {name: value for name, value in found.items() if name in known}

    def integer(self, least: int = 0) -> int:
        """Return a number, in any of Python's notations."""
        try:
            value = int(self.text(), 0)
        except ValueError:
            raise self.error(f"{self.text()[:80]!r} is no whole number") from None
        try:
            bounded(value)
        except ValueError as error:
            raise self.error(str(error)) from None
        if value < least:
            raise self.error(f"{value} is less than {least}")
        return value


def read_document(file: Path) -> Element:
    """Read the one document of a file (JSON is YAML).

    Raises:
        EntriesError: It is no YAML; with the position.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is not text in UTF-8") from None
    return parse_document(text.replace("\t", " ") if file.suffix == ".json" else text, file)


def parse_document(text: str, file: Path) -> Element:
    """Read a document from a text; `file` is named in messages."""
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = FilePosition(file, mark.line + 1 if mark else 1, mark.column + 1 if mark else 1)
        raise place.error(error.problem or "this is no YAML") from None
    except yaml.YAMLError as error:
        raise FilePosition(file, 1, 1).error(" ".join(str(error).split())) from None
    except RecursionError:
        raise FilePosition(file, 1, 1).error("this is nested too deeply") from None
    if top is None:
        raise FilePosition(file, 1, 1).error("the file is empty")
    return Element(top, file)
