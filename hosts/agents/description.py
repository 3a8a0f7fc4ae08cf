"""What an agent is told: a value of its own type, checked on the way in."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import in_words

Model = TypeVar("Model", bound=BaseModel)


class Description(BaseModel):
    """A value that does not change, and without fields that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def parse_description(model: type[Model], description: Any) -> Model:
    """From JSON text, a decoded JSON object, or such a value itself, which many agents may share. Raises UserError
    with one line."""
    if isinstance(description, BaseModel) and not isinstance(description, model):
        description = description.model_dump(mode="json")
    try:
        if isinstance(description, (str, bytes)):
            return model.model_validate_json(description)
        return model.model_validate(description)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "as a whole"
        raise UserError(f"description, {where}: {in_words(first)}") from None
