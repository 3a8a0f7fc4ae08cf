"""What is wrong with a value is said in our words, whatever pydantic finds."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gradbed.common.problems import first_problem


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"] = "dog"
    age: int


@pytest.mark.parametrize(
    ("form", "value", "words"),
    [
        (Annotated[int, Field(ge=1)], 0, "must be at least 1"),
        (Annotated[int, Field(le=64)], 65, "must be at most 64"),
        (Annotated[float, Field(gt=0.0)], 0, "must be more than 0"),
        (Annotated[float, Field(lt=0.5)], 0.5, "must be less than 0.5"),
        (Literal["a", "b", "c"], "d", "must be one of 'a', 'b', 'c'"),
        (Literal["a"], "d", "must be 'a'"),
        (Colour, "green", "must be one of 'red', 'blue'"),
        (int, "many", "must be a whole number"),
        (int, 1.5, "must be a whole number"),
        (float, "fast", "must be a number"),
        (Annotated[float, Field(allow_inf_nan=False)], math.inf, "must be a finite number"),
        (bool, "maybe", "must be true or false"),
        (str, 3, "must be a text"),
        (list[int], 3, "must be a list"),
        (tuple[int, ...], 3, "must be a list"),
        (dict[str, int], 3, "must be a mapping"),
        (Dog, 3, "must be a mapping"),
        (Path, 3, "must be a path"),
        (Annotated[list[int], Field(min_length=1)], [], "must have at least 1 value"),
        (Annotated[list[int], Field(max_length=2)], [1, 2, 3], "must have at most 2 values"),
        (Dog, {}, "age: is missing"),
        (Dog, {"age": 3, "sise": 4}, "sise: is not known here"),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            {"kind": "cow"},
            "must be one of 'cat', 'dog', got 'cow'",
        ),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {}, "is missing"),
    ],
)
def test_our_words(form: Any, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(form).validate_python(value)
    said = first_problem(caught.value)
    assert said == words
    assert "nput" not in said
