"""What is said of an NDN job at the REST interface."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# On star:2.
_EXAMPLE: dict[str, Any] = {
    "prefixes": [{"name": "/digits/h1", "host": "h1"}, {"name": "/digits/h2", "host": "h2"}],
    "consumers": ["h1", "h2"],
}
_INSTALLED: dict[str, Any] = {
    **_EXAMPLE,
    "prefixes": [{"name": "/digits-1/h1", "host": "h1"}, {"name": "/digits-1/h2", "host": "h2"}],
}


class Prefix(BaseModel):
    """Interests for names that begin with `name` go to `host`. The first component of a job's names ends with its
    number: asked for as /a/b, a prefix is /a-7/b in the answer of job 7."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    host: str
    consumers: tuple[str, ...] | None = None
    """Who asks for it; None: all consumers of the job. For a single one routers choose among equally short paths by a
    hash of the name, as ECMP does; for several they follow a tree of few links."""


class NdnRequest(BaseModel):
    """Prefixes to route to their hosts, along trees of few links that span the consumers."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _EXAMPLE})

    prefixes: Annotated[tuple[Prefix, ...], Field(min_length=1)]
    consumers: tuple[str, ...] = ()


class NdnAnswer(NdnRequest):
    """The job as it is installed, with its prefixes under their own names.

    tree_edges: for each prefix the links of its tree, that to its host included."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"example": {"job": 1, "tree_edges": [2, 2], **_INSTALLED}}
    )

    job: int
    tree_edges: tuple[int, ...]
