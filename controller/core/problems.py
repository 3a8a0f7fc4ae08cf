"""Pydantic's complaints for people."""

from __future__ import annotations

from pydantic import ValidationError


def first_problem(error: ValidationError) -> str:
    """The first one with the field it is about, on one line."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    message = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"{place}: {message}" if place else message
