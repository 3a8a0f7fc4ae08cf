"""Agents, and other functions that are named in commands and descriptions, as "module:function"."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.hosts.agents.description import parse_description


def find_function(name: str) -> Callable[..., Any]:
    """Loads its module. UserError with one line if there is none."""
    try:
        function = attribute(name)
    except (ImportError, SyntaxError, AttributeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f'no function is called {name!r}, which should be "module:function" ({reason})') from None
    if not callable(function):
        raise UserError(f"{name!r} is no function")
    found: Callable[..., Any] = function
    return found


def description_type(function: Callable[..., Any], name: str) -> type[BaseModel]:
    """The annotation of the second parameter, the description. name: of the function, for the UserError."""
    try:
        parameter = list(inspect.signature(function).parameters)[1]
        model: type[BaseModel] = typing.get_type_hints(function)[parameter]
        if issubclass(model, BaseModel):
            return model
    except (IndexError, KeyError, NameError, TypeError):
        pass
    raise UserError(f"{name!r} must take a context and a description that is annotated with its pydantic model")


def prepare_agent(name: str, description: Any) -> tuple[Callable[..., Any], BaseModel]:
    """An agent's function and its description, checked; calls `prepare` of its module, if there is one. UserError."""
    main = find_function(name)
    checked = parse_description(description_type(main, name), description)
    prepare = getattr(sys.modules[main.__module__], "prepare", None)
    if prepare is not None:
        try:
            prepare(checked)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{name!r} could not be prepared: {one_line(error)}") from None
    return main, checked


def one_line(error: Exception) -> str:
    """An unforeseen error, with the place where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return " ".join(f"{text} ({os.path.basename(place.filename)}:{place.lineno})".split())
