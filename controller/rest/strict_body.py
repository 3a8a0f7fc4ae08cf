"""Bodies as strict as their schema: a model by itself takes 0 for a boolean, and "2" for a number."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic.functional_validators import BeforeValidator


def strict(model: type[BaseModel]) -> Any:
    """The type of an endpoint's body."""

    def check(value: Any) -> BaseModel:
        if isinstance(value, bytes):
            raise RequestValidationError([{"loc": ("body",), "msg": "send JSON, with Content-Type application/json"}])
        try:
            # As JSON: there, lists stand for tuples, and texts for addresses, in a strict model too.
            return model.model_validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
            raise RequestValidationError(problems) from None

    return Annotated[model, BeforeValidator(check)]
