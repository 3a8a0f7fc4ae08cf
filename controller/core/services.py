"""Which systems a controller serves: their services, named in its configuration and loaded by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.common.problems import Spelling, first_problem
from gradbed.controller.core.service import Service


class ServiceConfig(BaseModel):
    """name: the system's, in paths of the REST interface. service: "module:Class". settings: of its own type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[
        str,
        Spelling(r"[a-z][a-z0-9_-]*", "a name is a lower-case letter, then such letters, digits, _ and -"),
    ]
    service: Annotated[str, Spelling(r"[\w.]+:\w+", "a service is written module:class")]
    settings: dict[str, Any] = {}


AnyService = Service[Any, Any, Any, Any]


@dataclass(frozen=True)
class LoadedService:
    """A service's class and the settings that it is to be made with."""

    name: str
    service_class: type[AnyService]
    settings: BaseModel


def load_services(configs: Sequence[ServiceConfig]) -> list[LoadedService]:
    """UserError if a service cannot be loaded, or does not take its settings."""
    return [_load(config) for config in configs]


def _load(config: ServiceConfig) -> LoadedService:
    try:
        found = attribute(config.service)
    except (ImportError, AttributeError) as error:
        raise UserError(f"cannot load the service {config.service} of {config.name}: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Service)):
        raise UserError(f"cannot load the service {config.service} of {config.name}: it is no Service")
    try:
        settings = found.Settings.model_validate(config.settings)
    except ValidationError as error:
        raise UserError(f"settings of {config.name}: {first_problem(error)}") from None
    return LoadedService(config.name, found, settings)
