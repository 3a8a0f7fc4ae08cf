"""YAML with the place of every value, so that messages can name the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gradbed.common.errors import UserError
from gradbed.common.yaml_numbers import bounded

# ---- Yaml text ----
#
# YAML with the place of every value, so that messages can name the line.


MAX_VALUES = 100_000
"""Of a document: aliases of aliases would stand for any number."""

Place = tuple[str | int, ...]
"""Keys and list positions that lead to a value."""


class StudyError(UserError):
    """Something is wrong in a study file; the text begins with FILE:LINE."""

    prefix = ""


@dataclass(frozen=True)
class YamlDocument:
    """data: plain Python values. lines: the line (from 1) of each value's key, by its place. origins: where values
    really come from that another part of the text changed."""

    path: Path
    data: dict[str, Any]
    lines: Mapping[Place, int]
    origins: Mapping[Place, Place] = field(default_factory=dict)

    def line(self, place: Sequence[str | int]) -> int:
        """The line of the innermost part of `place` that is in the text."""
        for length in range(len(place), 0, -1):
            part = tuple(place[:length])
            if (found := self.origins.get(part, part)) in self.lines:
                return self.lines[found]
        return 1

    def error(self, place: Sequence[str | int], message: str) -> StudyError:
        return StudyError(f"{self.path}:{self.line(place)}: {message}")


@dataclass(frozen=True)
class GivenValues(YamlDocument):
    """A study that a program made: its values stand in no file. path: of one in the folder where relative paths
    begin."""

    def error(self, place: Sequence[str | int], message: str) -> StudyError:
        return StudyError(message)


def read_yaml(path: Path) -> YamlDocument:
    """Return a document whose top is a mapping.

    A key given twice is refused: YAML 1.2 forbids it (section 3.2.1.3), though PyYAML would take the last.

    Raises:
        StudyError: anything else, with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8") from None
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise StudyError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem or 'not YAML'}") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{path}:1: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise StudyError(f"{path}:1: it is nested too deeply") from None
    if not isinstance(top, yaml.MappingNode):
        raise StudyError(f"{path}:1: a study is a mapping, such as 'name: my_study'")
    lines: dict[Place, int] = {}
    return YamlDocument(path, _value(top, (), lines, path, frozenset()), lines)


def _value(node: yaml.Node, place: Place, lines: dict[Place, int], path: Path, above: frozenset[int]) -> Any:
    lines.setdefault(place, node.start_mark.line + 1)
    if len(lines) > MAX_VALUES:
        raise StudyError(
            f"{path}:{node.start_mark.line + 1}: more than {MAX_VALUES} values, those of aliases counted"
        )
    if id(node) in above:
        raise StudyError(f"{path}:{node.start_mark.line + 1}: an alias names something that it is itself part of")
    above |= {id(node)}
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise StudyError(f"{path}:{line}: a key is a word")
            key = str(key_node.value)
            if key in result:
                raise StudyError(f"{path}:{line}: {key!r} is given twice")
            lines[(*place, key)] = line
            result[key] = _value(value_node, (*place, key), lines, path, above)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*place, i), lines, path, above) for i, item in enumerate(node.value)]
    constructor = yaml.constructor.SafeConstructor()
    try:
        value = constructor.construct_object(node)
        return bounded(value) if isinstance(value, int) else value
    except (yaml.YAMLError, ValueError) as error:
        problem = getattr(error, "problem", None) or str(error)
        raise StudyError(f"{path}:{node.start_mark.line + 1}: {problem}") from None
