"""Messages for values that pydantic rejects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "bool": "true or false",
    "string": "a text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "path": "a path",
}


def in_words(problem: Mapping[str, Any]) -> str:
    """Say what is wrong with a value, in our words for what pydantic finds.

    problem: one of pydantic's `ValidationError.errors()`.
    """
    kind, context = str(problem["type"]), problem.get("ctx") or {}
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        value = context[limit]
        return f"must be {words} {int(value) if isinstance(value, float) and value.is_integer() else value}"
    if kind in ("literal_error", "enum"):
        return f"must be {_one_of(str(context['expected']))}"
    if kind == "union_tag_invalid":
        return f"must be {_one_of(str(context['expected_tags']))}, got {context['tag']!r}"
    if kind in ("missing", "union_tag_not_found"):
        return "is missing"
    if kind == "extra_forbidden":
        return "is not known here"
    if kind in ("too_short", "too_long"):
        bound, limit = ("at least", "min_length") if kind == "too_short" else ("at most", "max_length")
        return f"must have {bound} {context[limit]} {'value' if context[limit] == 1 else 'values'}"
    if kind == "int_from_float":
        return "must be a whole number"
    wanted = re.sub("_(type|parsing|parsing_size)$", "", kind)
    if wanted in _KINDS:
        return f"must be {_KINDS[wanted]}"
    return " ".join(str(problem["msg"]).removeprefix("Value error, ").split())


def _one_of(words: str) -> str:
    """Turn pydantic's "'a', 'b' or 'c'" into "one of 'a', 'b', 'c'"; return a single word as it is."""
    listed = words.replace(" or ", ", ")
    return f"one of {listed}" if ", " in listed else listed


def first_problem(error: ValidationError) -> str:
    """Return the first one with the field it is about, on one line."""
    return problem_with_place(error.errors(include_url=False)[0])


def problem_with_place(problem: Mapping[str, Any], skipped: int = 0) -> str:
    """Say what is wrong where, without the first parts of the place, if so many are `skipped`."""
    place = ".".join(str(part) for part in problem["loc"][skipped:])
    return f"{place}: {in_words(problem)}" if place else in_words(problem)


@dataclass(frozen=True)
class Spelling:
    """Annotates a str that has to match a pattern as a whole; words: "a tier is a lower-case letter, ..."."""

    pattern: str
    words: str

    def check(self, text: str) -> str:
        if re.fullmatch(self.pattern, text) is None:
            raise ValueError(f"{text!r}: {self.words}")
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^{self.pattern}$"}
