"""What keys a model knows at some place, for suggestions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel


def known_keys(model: type[BaseModel], place: Sequence[str | int], data: Mapping[str, Any]) -> list[str]:
    """The keys of the mapping at `place`; of all members of a union whose `kind` fits the data."""
    models = [model]
    value: Any = data
    for part in place:
        value = value[part]
        following: list[type[BaseModel]] = []
        for candidate in models:
            field = candidate.model_fields.get(str(part))
            following += _models(field.annotation) if field else _values_of_mappings(candidate)
        models = following
    kind = value.get("kind") if isinstance(value, dict) else None
    fitting = [m for m in models if kind is not None and kind in _kinds(m)] or models
    return list(dict.fromkeys(key for m in fitting for key in m.model_fields))


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, UnionType, Annotated, dict, list, tuple):
        return [model for argument in get_args(annotation) for model in _models(argument)]
    return []


def _values_of_mappings(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A key of a dict[str, Model] was passed: the model itself is what stands there."""
    return [model]


def _kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    field = model.model_fields.get("kind")
    return get_args(field.annotation) if field else ()
