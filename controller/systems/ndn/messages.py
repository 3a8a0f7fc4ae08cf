"""What is said of an NDN job at the REST interface."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# On star:2.
_EXAMPLE: dict[str, Any] = {
    "prefixes": [{"name": "/digits/h1", "host": "h1"}, {"name": "/digits/h2", "host": "h2"}],
    "consumers": ["h1", "h2"],
}


class Prefix(BaseModel):
    """Interests for names that begin with `name` go to `host`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    host: str


class NdnRequest(BaseModel):
    """Prefixes to route to their hosts, along trees of few links that span the consumers."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _EXAMPLE})

    prefixes: Annotated[tuple[Prefix, ...], Field(min_length=1)]
    consumers: tuple[str, ...] = ()


class NdnAnswer(NdnRequest):
    """The job as it is installed. tree_edges: for each prefix the links of its tree, that to its host included."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"example": {"job": 1, "tree_edges": [2, 2], **_EXAMPLE}}
    )

    job: int
    tree_edges: tuple[int, ...]
