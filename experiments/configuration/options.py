"""Make options of pydantic models, for command lines and the prompt: each is spelled once, in the model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gradbed.common.errors import UserError
from gradbed.common.problems import in_words

DEFAULT_PANEL = "Workload"
"""Heading in the help for fields of models that name no `panel`."""
FAULTS = "Faults"
RUN_AND_OUTPUT = "Run and output"
LAST_PANELS = ("Network", "Switches", "Transport", FAULTS, RUN_AND_OUTPUT)
"""Headings that come after those of the workload, in this order."""


@dataclass(frozen=True)
class ModelOption:
    """An option made of a field of a model, or of a model inside it."""

    path: tuple[str, ...]
    """Names of the fields that lead to it."""
    flag: str
    kind: Any
    help: str
    default: Any
    is_list: bool = False
    """Whether its value is words with commas between them."""
    is_argument: bool = False
    """Whether it stands on the command line without a flag."""
    panel: str = DEFAULT_PANEL
    """Heading in the help under which it is listed."""
    is_advanced: bool = False
    """Whether only `--help-all` lists it."""

    @property
    def parameter(self) -> str:
        """Name of its parameter in Python."""
        return "__".join(self.path)


def model_options(model: type[BaseModel], defaults: Mapping[str, Any]) -> list[ModelOption]:
    """Return an option for every field that is a single value or a list of them.

    The flag is --FIELD, the last part of the field's path, or what the field's `option` says. One that is `repeated`
    may be given several times: its field is validated from a list.

    Args:
        defaults: defaults in place of the models', by dotted path.
    """
    found: dict[str, ModelOption] = {}
    for path, field, panel, above in _leaves(model, (), DEFAULT_PANEL, ""):
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        name = str(extra.get("option") or (path[-2] if path[-1] == "kind" else path[-1]))
        is_repeated = extra.get("repeated") is True
        kind = list[str] if is_repeated else _option_type(field.annotation)
        if kind is None or extra.get("option") is False:
            continue
        flag = f"--{name.replace('_', '-')}"
        if flag in found:
            if found[flag].path[-1] != path[-1] or found[flag].path[:-1] != path[:-1]:
                raise ValueError(f"{'.'.join(path)} and {'.'.join(found[flag].path)} are both {flag}")
            kind, default = _joined(found[flag].kind, kind), found[flag].default
        else:
            default = None if field.default is PydanticUndefined else field.default
            default = default.value if isinstance(default, Enum) else default
        default = defaults.get(".".join(path), default)
        found[flag] = ModelOption(
            path,
            flag,
            kind,
            field.description or (above if path[-1] == "kind" else ""),
            default,
            not is_repeated and _is_list(field.annotation),
            extra.get("argument") is True,
            str(extra.get("panel") or panel),
            extra.get("advanced") is True,
        )
    return list(found.values())


def within(options: list[ModelOption], paths: Collection[str]) -> list[ModelOption]:
    """Return the options whose field, or a section above it, is one of the dotted paths."""
    return [
        each
        for each in options
        if any(".".join(each.path[:depth]) in paths for depth in range(1, len(each.path) + 1))
    ]


def described(option: ModelOption) -> str:
    """Return the help of an option, with its possible values where the text does not name them."""
    words = option.help
    if get_origin(option.kind) is Literal and not all(str(each) in words for each in get_args(option.kind)):
        words = f"{words} One of: {', '.join(map(str, get_args(option.kind)))}.".strip()
    return words


def _joined(first: Any, second: Any) -> Any:
    """Return the type of an option that members of a tagged union share; their tags are all its values."""
    if get_origin(first) is Literal and get_origin(second) is Literal:
        return Literal[tuple(dict.fromkeys((*get_args(first), *get_args(second))))]
    return first


def _leaves(
    model: type[BaseModel], above: tuple[str, ...], panel: str, description: str
) -> Iterator[tuple[tuple[str, ...], FieldInfo, str, str]]:
    """Yield path, field, panel, and the description of the model around it, for every field that holds no model.

    A model without a panel has that of the one around it.
    """
    panel = getattr(model, "panel", None) or panel
    for name, field in model.model_fields.items():
        inner = [
            each for each in _members(field.annotation) if isinstance(each, type) and issubclass(each, BaseModel)
        ]
        if inner and get_origin(field.annotation) not in (dict, tuple, list):
            for each in inner:
                for path, leaf, own, words in _leaves(each, (*above, name), panel, field.description or ""):
                    # The option that chooses a member of a union stands beside the union, not among the member's.
                    is_tag = len(inner) > 1 and path == (*above, name, "kind")
                    yield path, leaf, panel if is_tag else own, words
        else:
            yield (*above, name), field, panel, description


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [member for each in get_args(annotation) for member in _members(each)]
    return [annotation]


def _option_type(annotation: Any) -> Any:
    """Return what typer makes of a field; None if it is no single value and no list of words."""
    members = [each for each in _members(annotation) if each is not NoneType]
    if any(map(_is_enum, members)) and all(_is_enum(each) or get_origin(each) is Literal for each in members):
        return str
    if len(members) != 1:
        return str if all(each in (int, float, str) for each in members) else None
    (kind,) = members
    if _is_list(annotation):
        element = get_args(kind)[0]
        return str if element is str or get_origin(element) is Literal else None
    if kind in (int, float, str, bool, Path) or get_origin(kind) is Literal:
        return kind
    return None


def _is_enum(kind: Any) -> bool:
    """Return whether values of the type are words."""
    return isinstance(kind, type) and issubclass(kind, str) and issubclass(kind, Enum)


def _is_list(annotation: Any) -> bool:
    return any(get_origin(each) is tuple and get_args(each)[1:] == (Ellipsis,) for each in _members(annotation))


def nested(options: list[ModelOption], given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values, on top of `defaults` (by dotted path), as nested mappings for the model."""
    values: dict[str, Any] = {}
    known = {option.parameter: option for option in options}
    by_path = {tuple(path.split(".")): value for path, value in defaults.items()}
    for parameter, value in given.items():
        if value is not None and value not in ((), []):
            option = known.get(parameter)
            listed = option is not None and option.is_list
            words = tuple(word for word in value.split(",") if word) if listed else value
            by_path[tuple(parameter.split("__"))] = words
    for path, value in by_path.items():
        inner = values
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = value
    return values


def complaint(error: ValidationError, options: list[ModelOption]) -> UserError:
    """Return the first problem of a validation as a UserError, with the flag that it is about."""
    first = error.errors(include_url=False)[0]
    words = [part for part in first["loc"] if isinstance(part, str)]
    message = in_words(first)
    if not words:
        return UserError(message)  # of how options go together: it names them
    for option in options:
        if list(option.path) == words or (option.path[-1] == words[-1] and set(option.path) <= set(words)):
            if first["type"] == "extra_forbidden":
                message = f"does not go with {_kind(options, words)}"
            told = ("value_error", "extra_forbidden", "missing")
            got = "" if first["type"] in told else f", got {first['input']!r}"
            return UserError(f"{option.flag}: {message}{got}")
    # A section as a whole is wrong: it has the option of its kind, if it has one.
    named = [option for option in options if option.path == (words[-1], "kind")]
    if named:
        return UserError(f"{named[0].flag}: {message}")
    return UserError(f"{'.'.join(words)}: {message}")


def _kind(options: list[ModelOption], words: list[str]) -> str:
    """Return the option that chose the member of a union in which a field is missing.

    Args:
        words: section, member, field.
    """
    chosen = [option.flag for option in options if option.path == (words[0], "kind")]
    return f"{chosen[0]} {words[-2]}" if chosen else "the other options"
